# mcp-memory in a container: `docker build -t mcp-memory .`, and docs/deployment.md for what to do with it.
# Both stages start from the same image, so what is compiled in the first runs in the second.
ARG PYTHON=python:3.13-slim-bookworm

FROM ${PYTHON} AS build
WORKDIR /build
COPY requirements/run.txt requirements/run.txt
RUN python -m venv --without-pip /opt/mcp-memory \
    && pip --python /opt/mcp-memory/bin/python install --no-cache-dir --no-compile --require-hashes -r requirements/run.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip --python /opt/mcp-memory/bin/python install --no-cache-dir --no-compile --no-deps . \
    && python -m compileall -q -j 0 /opt/mcp-memory/lib

FROM ${PYTHON}
LABEL org.opencontainers.image.title="mcp-memory" \
      org.opencontainers.image.description="A memory for AI agents: a knowledge graph over MCP that never loses a fact" \
      org.opencontainers.image.licenses="Apache-2.0" \
      io.modelcontextprotocol.server.name="io.github.mcp-memory/mcp-memory"
RUN useradd --system --uid 10001 --user-group --home-dir /data --shell /usr/sbin/nologin memory \
    && install -d -o memory -g memory -m 0700 /data
COPY --from=build /opt/mcp-memory /opt/mcp-memory
ENV PATH=/opt/mcp-memory/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    MEMORY_FILE_PATH=/data/memory.db
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
# Choose with variables (MCP_MEMORY_TRANSPORT=http ...): then this asks the right server.
HEALTHCHECK --interval=30s --timeout=10s --start-period=20s CMD ["mcp-memory", "health"]
ENTRYPOINT ["mcp-memory"]
