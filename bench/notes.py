"""Notes as people keep them, each in English and in Spanish, with a question for it in both: the small measure of
`bench/models.py`.

A question avoids the telling words of its note where it can, and notes come in families that are about the same
thing, so words alone lead astray. Every note answers exactly one question."""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """One fact and one question, in both languages."""

    english: str
    spanish: str
    asked: str
    preguntado: str


NOTES = [
    # ── a project ────────────────────────────────────────────────────────────────────────────────
    Note(
        "The nightly job that copies customer records fails when the disk is almost full.",
        "La tarea nocturna que copia los registros de clientes falla cuando el disco está casi lleno.",
        "Why does the batch process break after midnight?",
        "¿Por qué se rompe el proceso por lotes después de medianoche?",
    ),
    Note(
        "We chose PostgreSQL over MongoDB because reports need joins.",
        "Elegimos PostgreSQL en vez de MongoDB porque los informes necesitan uniones de tablas.",
        "What was the reason for picking a relational database?",
        "¿Cuál fue el motivo de escoger una base de datos relacional?",
    ),
    Note(
        "Releases go out every second Tuesday, never before a holiday.",
        "Las versiones salen un martes de cada dos, nunca antes de un festivo.",
        "How often do we ship?",
        "¿Cada cuánto publicamos?",
    ),
    Note(
        "The login page was redesigned by Farah and her team in spring.",
        "La página de acceso la rediseñaron Farah y su equipo en primavera.",
        "Who gave the sign-in screen its new look?",
        "¿Quién cambió el aspecto de la pantalla de inicio de sesión?",
    ),
    Note(
        "Passwords are hashed with argon2; the old MD5 ones were thrown away.",
        "Las contraseñas se guardan con argon2; las antiguas en MD5 se eliminaron.",
        "How are credentials stored securely?",
        "¿Cómo se almacenan las credenciales de forma segura?",
    ),
    Note(
        "The mobile app crashes on Android 9 when the camera is opened twice.",
        "La aplicación móvil se cierra en Android 9 al abrir la cámara dos veces.",
        "Is there a bug on older phones when taking pictures?",
        "¿Hay algún fallo en teléfonos antiguos al hacer fotos?",
    ),
    Note(
        "Invoices are sent as PDF on the first working day of the month.",
        "Las facturas se envían en PDF el primer día laborable del mes.",
        "When do clients get their bills?",
        "¿Cuándo reciben los clientes sus recibos?",
    ),
    Note(
        "The search box ignores accents since version 3.2.",
        "El buscador no distingue tildes desde la versión 3.2.",
        "Can people look things up without typing diacritics?",
        "¿Se puede encontrar algo sin escribir los acentos?",
    ),
    Note(
        "Our servers stand in Frankfurt because of data protection rules.",
        "Nuestros servidores están en Fráncfort por las normas de protección de datos.",
        "In which city is the infrastructure hosted, and why?",
        "¿En qué ciudad está alojada la infraestructura y por qué?",
    ),
    Note(
        "Error messages must tell the user what to do next.",
        "Los mensajes de error deben decir al usuario qué hacer a continuación.",
        "What is our rule for writing about failures?",
        "¿Qué regla tenemos para redactar los avisos cuando algo sale mal?",
    ),
    Note(
        "The cache is cleared whenever the price list changes.",
        "La caché se vacía cada vez que cambia la lista de precios.",
        "What happens after tariffs are updated?",
        "¿Qué ocurre cuando se actualizan las tarifas?",
    ),
    Note(
        "Unit tests take four minutes, the browser tests almost an hour.",
        "Las pruebas unitarias tardan cuatro minutos, las del navegador casi una hora.",
        "How long until the whole suite has run?",
        "¿Cuánto se tarda en ejecutar toda la batería de comprobaciones?",
    ),
    # ── people ───────────────────────────────────────────────────────────────────────────────────
    Note(
        "Ingrid is allergic to shellfish and carries an adrenaline pen.",
        "Ingrid es alérgica al marisco y lleva un inyector de adrenalina.",
        "Who must not eat prawns?",
        "¿Quién no puede comer gambas?",
    ),
    Note(
        "Tomás moved from Bogotá to Valencia to be near his daughter.",
        "Tomás se mudó de Bogotá a Valencia para estar cerca de su hija.",
        "Why did he leave Colombia?",
        "¿Por qué dejó Colombia?",
    ),
    Note(
        "Mei plays the cello in an amateur orchestra on Thursdays.",
        "Mei toca el violonchelo en una orquesta de aficionados los jueves.",
        "Which of my friends is a musician?",
        "¿Cuál de mis amistades se dedica a la música?",
    ),
    Note(
        "Olek broke his leg skiing and walks with crutches until May.",
        "Olek se rompió la pierna esquiando y lleva muletas hasta mayo.",
        "Who had an accident in the snow?",
        "¿Quién tuvo un accidente en la nieve?",
    ),
    Note(
        "Grandmother turns ninety in October and wants a small party.",
        "La abuela cumple noventa años en octubre y quiere una fiesta pequeña.",
        "Whose big birthday is coming up this autumn?",
        "¿De quién es el gran aniversario de este otoño?",
    ),
    Note(
        "Samir is learning to drive and has failed the exam once.",
        "Samir está aprendiendo a conducir y ha suspendido el examen una vez.",
        "Who is trying to get a licence for the car?",
        "¿Quién intenta sacarse el carné del coche?",
    ),
    Note(
        "Lucía quit her job at the bank to open a bakery.",
        "Lucía dejó su trabajo en el banco para abrir una panadería.",
        "Who became her own boss and sells bread?",
        "¿Quién montó su propio negocio y vende pan?",
    ),
    Note(
        "Ben cannot stand phone calls; write to him instead.",
        "Ben no soporta las llamadas; es mejor escribirle.",
        "What is the best way of reaching him?",
        "¿Cuál es la mejor manera de ponerse en contacto con él?",
    ),
    Note(
        "Aiko adopted two kittens from the shelter in March.",
        "Aiko adoptó dos gatitos del refugio en marzo.",
        "Who has got new pets?",
        "¿Quién tiene mascotas nuevas?",
    ),
    Note(
        "Rafael runs a marathon every autumn and trains before dawn.",
        "Rafael corre un maratón cada otoño y entrena antes del amanecer.",
        "Who gets up very early to do sports?",
        "¿Quién madruga mucho para hacer deporte?",
    ),
    Note(
        "Nora is writing her thesis about coral reefs.",
        "Nora escribe su tesis sobre los arrecifes de coral.",
        "Who does research on marine life?",
        "¿Quién investiga la vida marina?",
    ),
    Note(
        "Pavel stopped drinking alcohol two years ago.",
        "Pavel dejó de beber alcohol hace dos años.",
        "To whom should I not offer wine?",
        "¿A quién no debo ofrecerle vino?",
    ),
    # ── a household ──────────────────────────────────────────────────────────────────────────────
    Note(
        "The boiler is serviced each September by the firm in Mill Street.",
        "La caldera la revisa cada septiembre la empresa de la calle Mayor.",
        "Who looks after the heating?",
        "¿Quién se encarga de la calefacción?",
    ),
    Note(
        "The spare key lies under the blue flower pot.",
        "La llave de repuesto está debajo de la maceta azul.",
        "How do I get in if I am locked out?",
        "¿Cómo entro si me quedo fuera de casa?",
    ),
    Note(
        "The washing machine leaks unless the door is pressed hard.",
        "La lavadora pierde agua si no se aprieta bien la puerta.",
        "Why is the laundry room floor wet?",
        "¿Por qué está mojado el suelo del cuarto de la colada?",
    ),
    Note(
        "Rubbish is collected on Mondays, paper on the last Friday.",
        "La basura se recoge los lunes y el papel el último viernes.",
        "When do I have to put the bins out?",
        "¿Cuándo tengo que sacar los cubos?",
    ),
    Note(
        "The lease of the flat ends in June and may be renewed once.",
        "El contrato de alquiler del piso termina en junio y se puede renovar una vez.",
        "Until when may we stay in the apartment?",
        "¿Hasta cuándo podemos quedarnos en la vivienda?",
    ),
    Note(
        "The car needs winter tyres before the trip to the Pyrenees.",
        "El coche necesita neumáticos de invierno antes del viaje a los Pirineos.",
        "What must be changed on the vehicle for the mountains?",
        "¿Qué hay que cambiarle al vehículo para ir a la montaña?",
    ),
    Note(
        "The neighbours complained about the piano after ten at night.",
        "Los vecinos se quejaron del piano después de las diez de la noche.",
        "Who was annoyed by the noise?",
        "¿A quién le molestó el ruido?",
    ),
    Note(
        "The tomatoes on the balcony want water twice a day in July.",
        "Los tomates del balcón necesitan agua dos veces al día en julio.",
        "How should the plants be looked after in summer?",
        "¿Cómo hay que cuidar las plantas en verano?",
    ),
    # ── travel, health, money, taste ─────────────────────────────────────────────────────────────
    Note(
        "The night train to Vienna was cheaper than flying and we slept well.",
        "El tren nocturno a Viena salió más barato que volar y dormimos bien.",
        "How did we travel to Austria?",
        "¿Cómo viajamos a Austria?",
    ),
    Note(
        "The hotel in Kyoto had no lift and a wonderful garden.",
        "El hotel de Kioto no tenía ascensor, pero sí un jardín maravilloso.",
        "What was our accommodation in Japan like?",
        "¿Cómo era nuestro alojamiento en Japón?",
    ),
    Note(
        "My passport expires in eleven months; the office is booked up for weeks.",
        "Mi pasaporte caduca dentro de once meses; la oficina está completa durante semanas.",
        "Which travel document must be renewed soon?",
        "¿Qué documento de viaje hay que renovar pronto?",
    ),
    Note(
        "The doctor said to take the pills with food and to avoid grapefruit.",
        "La médica dijo que tomara las pastillas con comida y evitara el pomelo.",
        "What should I watch out for with my medicine?",
        "¿Con qué debo tener cuidado al tomar mi medicamento?",
    ),
    Note(
        "My back hurts less since I swim three times a week.",
        "Me duele menos la espalda desde que nado tres veces por semana.",
        "What helped against the pain?",
        "¿Qué me alivió el dolor?",
    ),
    Note(
        "I get headaches when I sleep less than six hours.",
        "Me da dolor de cabeza cuando duermo menos de seis horas.",
        "What are the effects of too little rest on me?",
        "¿Qué efectos tiene en mí descansar poco?",
    ),
    Note(
        "A third of my salary goes into the savings account for a house.",
        "Un tercio de mi sueldo va a la cuenta de ahorro para una casa.",
        "How much of my income do I put aside?",
        "¿Cuánto de mis ingresos aparto?",
    ),
    Note(
        "The insurance paid for the broken window but not for the carpet.",
        "El seguro pagó la ventana rota, pero no la alfombra.",
        "Which damage was covered?",
        "¿Qué daños estaban cubiertos?",
    ),
    Note(
        "I owe Dimitri forty euros for the concert tickets.",
        "Le debo a Dimitri cuarenta euros de las entradas del concierto.",
        "To whom do I have to pay money back?",
        "¿A quién tengo que devolverle dinero?",
    ),
    Note(
        "I prefer novels told by an unreliable narrator.",
        "Prefiero las novelas contadas por un narrador poco fiable.",
        "What kind of books do I enjoy?",
        "¿Qué tipo de libros me gusta?",
    ),
    Note(
        "Coffee after four keeps me awake, green tea does not.",
        "El café después de las cuatro me quita el sueño; el té verde, no.",
        "Which hot drink can I have in the evening?",
        "¿Qué bebida caliente puedo tomar por la noche?",
    ),
    Note(
        "The film about the lighthouse keepers was too slow for me.",
        "La película sobre los guardianes del faro me pareció demasiado lenta.",
        "What did I think of what we saw at the cinema?",
        "¿Qué me pareció lo que vimos en el cine?",
    ),
    Note(
        "I would rather have a table by the window, far from the kitchen.",
        "Prefiero una mesa junto a la ventana, lejos de la cocina.",
        "Where do I like to sit in a restaurant?",
        "¿Dónde me gusta sentarme en un restaurante?",
    ),
    Note(
        "My first computer was a Commodore that my uncle repaired.",
        "Mi primer ordenador fue un Commodore que arregló mi tío.",
        "On what machine did I start as a child?",
        "¿Con qué máquina empecé de pequeño?",
    ),
    Note(
        "Answer me briefly and leave out the bullet points.",
        "Contéstame con brevedad y sin listas.",
        "What style of replies is wanted?",
        "¿Qué estilo de respuestas se desea?",
    ),
    Note(
        "The dentist found a crack in a molar and made an appointment for a crown.",
        "El dentista encontró una grieta en una muela y dio cita para una corona.",
        "What is wrong with my teeth?",
        "¿Qué les pasa a mis dientes?",
    ),
]
