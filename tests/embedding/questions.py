"""Statements, and questions that they answer, in six languages: what questions have in common beyond what they ask.

The bundled model lays questions beside questions. `common` are the two rows it is given to mend that;
`python -m tests.embedding.questions` writes them into the package, and a test computes them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mcp_memory.embedding import universal
from mcp_memory.embedding.engine import engine
from mcp_memory.embedding.models import EMBEDDED

PAIRS: dict[str, list[tuple[str, str]]] = {
    "en": [
        ("Clara went to the market on Sunday.", "When did Clara go to the market?"),
        ("David: I bought a red bicycle yesterday.", "What did David buy?"),
        ("My sister lives in Oslo now.", "Where does my sister live?"),
        ("We painted the kitchen yellow because it was dark.", "Why did we paint the kitchen yellow?"),
        ("Hugo: I am going to study law next year.", "What is Hugo planning to study?"),
        ("The server restarts every night at two.", "How often does the server restart?"),
        ("Elena and Marc got married in a small church.", "Who got married in a church?"),
        ("The report was written by the finance department.", "Who wrote the report?"),
        ("Paula: my favourite singer is an old man from Cuba.", "Who is Paula's favourite singer?"),
        ("He likes to read science fiction before bed.", "What does he like to read?"),
        ("The bakery has been closed since 2019.", "Since when has the bakery been closed?"),
        ("They use Git for the texts and a drive for the pictures.", "Which tools do they use?"),
        ("Jonas: I have two dogs, Rex and Luna!", "What are the names of Jonas's pets?"),
        ("The meeting lasted three hours.", "How long did the meeting last?"),
        ("I'd like to learn to cook Thai food.", "What would I like to learn?"),
        ("Amy: wow, that sounds great, I'm so happy for you!", "How did Amy feel about the news?"),
        ("The key is in the drawer of the desk.", "Where is the key?"),
        ("It cost forty-five dollars.", "How much did it cost?"),
        ("The package is written in Python and Rust.", "Which languages is the package written in?"),
        ("Leo: I hurt my knee when I was playing football.", "What happened to Leo's knee?"),
        ("The new rule is that nobody works on Fridays.", "What is the new rule?"),
        ("Grandpa was a carpenter in Lisbon.", "What did grandpa do for a living?"),
        ("Kim started painting to relax after work.", "Why did Kim start painting?"),
        ("We decided to keep the old logo.", "What did we decide about the logo?"),
    ],
    "es": [
        ("Clara fue al mercado el domingo.", "¿Cuándo fue Clara al mercado?"),
        ("David: ayer me compré una bicicleta roja.", "¿Qué se compró David?"),
        ("Mi hermana vive ahora en Oslo.", "¿Dónde vive mi hermana?"),
        ("Pintamos la cocina de amarillo porque era oscura.", "¿Por qué pintamos la cocina de amarillo?"),
        ("Hugo: el año que viene voy a estudiar derecho.", "¿Qué piensa estudiar Hugo?"),
        ("El servidor se reinicia cada noche a las dos.", "¿Cada cuánto se reinicia el servidor?"),
        ("Elena y Marc se casaron en una iglesia pequeña.", "¿Quiénes se casaron en una iglesia?"),
        ("El informe lo escribió el departamento de finanzas.", "¿Quién escribió el informe?"),
        ("Paula: mi cantante favorito es un anciano de Cuba.", "¿Quién es el cantante favorito de Paula?"),
        ("Le gusta leer ciencia ficción antes de dormir.", "¿Qué le gusta leer?"),
        ("La panadería está cerrada desde 2019.", "¿Desde cuándo está cerrada la panadería?"),
        ("Usan Git para los textos y un disco para las fotos.", "¿Qué herramientas usan?"),
        ("Jonas: ¡tengo dos perros, Rex y Luna!", "¿Cómo se llaman las mascotas de Jonas?"),
        ("La reunión duró tres horas.", "¿Cuánto duró la reunión?"),
        ("Me gustaría aprender a cocinar comida tailandesa.", "¿Qué me gustaría aprender?"),
        ("Amy: ¡qué bien, me alegro mucho por ti!", "¿Cómo se sintió Amy con la noticia?"),
        ("La llave está en el cajón del escritorio.", "¿Dónde está la llave?"),
        ("Costó cuarenta y cinco dólares.", "¿Cuánto costó?"),
        ("El paquete está escrito en Python y Rust.", "¿En qué lenguajes está escrito el paquete?"),
        ("Leo: me hice daño en la rodilla jugando al fútbol.", "¿Qué le pasó a Leo en la rodilla?"),
        ("La nueva regla es que nadie trabaja los viernes.", "¿Cuál es la nueva regla?"),
        ("El abuelo fue carpintero en Lisboa.", "¿A qué se dedicaba el abuelo?"),
        ("Kim empezó a pintar para relajarse después del trabajo.", "¿Por qué empezó a pintar Kim?"),
        ("Decidimos conservar el logotipo antiguo.", "¿Qué decidimos sobre el logotipo?"),
    ],
    "fr": [
        ("Clara est allée au marché dimanche.", "Quand Clara est-elle allée au marché ?"),
        ("David : j'ai acheté un vélo rouge hier.", "Qu'est-ce que David a acheté ?"),
        ("Ma sœur habite maintenant à Oslo.", "Où habite ma sœur ?"),
        ("Le serveur redémarre chaque nuit à deux heures.", "À quelle fréquence le serveur redémarre-t-il ?"),
        ("Le rapport a été écrit par le service financier.", "Qui a écrit le rapport ?"),
        ("La réunion a duré trois heures.", "Combien de temps a duré la réunion ?"),
        ("Nous avons décidé de garder l'ancien logo.", "Qu'avons-nous décidé au sujet du logo ?"),
        ("Kim a commencé à peindre pour se détendre.", "Pourquoi Kim a-t-elle commencé à peindre ?"),
    ],
    "de": [
        ("Clara ging am Sonntag auf den Markt.", "Wann ging Clara auf den Markt?"),
        ("David: Ich habe gestern ein rotes Fahrrad gekauft.", "Was hat David gekauft?"),
        ("Meine Schwester wohnt jetzt in Oslo.", "Wo wohnt meine Schwester?"),
        ("Der Server startet jede Nacht um zwei neu.", "Wie oft startet der Server neu?"),
        ("Den Bericht hat die Finanzabteilung geschrieben.", "Wer hat den Bericht geschrieben?"),
        ("Die Sitzung dauerte drei Stunden.", "Wie lange dauerte die Sitzung?"),
        ("Wir haben beschlossen, das alte Logo zu behalten.", "Was haben wir über das Logo beschlossen?"),
        ("Kim begann zu malen, um sich zu entspannen.", "Warum begann Kim zu malen?"),
    ],
    "pt": [
        ("Clara foi ao mercado no domingo.", "Quando é que Clara foi ao mercado?"),
        ("David: ontem comprei uma bicicleta vermelha.", "O que é que o David comprou?"),
        ("A minha irmã vive agora em Oslo.", "Onde vive a minha irmã?"),
        ("O servidor reinicia todas as noites às duas.", "Com que frequência reinicia o servidor?"),
        ("O relatório foi escrito pelo departamento financeiro.", "Quem escreveu o relatório?"),
        ("A reunião durou três horas.", "Quanto tempo durou a reunião?"),
        ("Decidimos manter o logótipo antigo.", "O que decidimos sobre o logótipo?"),
        ("Kim começou a pintar para relaxar.", "Porque começou Kim a pintar?"),
    ],
    "it": [
        ("Clara è andata al mercato domenica.", "Quando è andata al mercato Clara?"),
        ("David: ieri ho comprato una bicicletta rossa.", "Che cosa ha comprato David?"),
        ("Mia sorella adesso vive a Oslo.", "Dove vive mia sorella?"),
        ("Il server si riavvia ogni notte alle due.", "Ogni quanto si riavvia il server?"),
        ("La relazione è stata scritta dall'ufficio finanziario.", "Chi ha scritto la relazione?"),
        ("La riunione è durata tre ore.", "Quanto è durata la riunione?"),
        ("Abbiamo deciso di tenere il vecchio logo.", "Che cosa abbiamo deciso sul logo?"),
        ("Kim ha iniziato a dipingere per rilassarsi.", "Perché Kim ha iniziato a dipingere?"),
    ],
}


def common() -> Any:
    """The mean statement and the mean question; each language counts the same."""
    found = engine(EMBEDDED.name)
    assert found is not None
    rows = [
        np.mean([found.encode([pair[side] for pair in pairs]).mean(axis=0) for pairs in PAIRS.values()], axis=0)
        for side in (0, 1)
    ]
    return np.stack(rows).astype("<f2")


if __name__ == "__main__":
    common().tofile(Path(universal.__file__).with_name(universal.COMMON))
