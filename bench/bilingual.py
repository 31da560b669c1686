# ruff: noqa: E501  (prose in two languages)
"""The same notes and questions in English and Spanish: the measure of languages in `bench/retrieval.py`.

Written for this bench. A fact stands in both languages, and so does a question in other words than the fact's. The
long notes say several things, and the question asks about one of them: whatever helps short remarks must not hurt
these."""

from __future__ import annotations

from typing import NamedTuple

ENGLISH, SPANISH = LANGUAGES = ("English", "Spanish")


class Fact(NamedTuple):
    """What is known and what is asked, in both languages."""

    english: str
    spanish: str
    english_question: str
    spanish_question: str


class Note(NamedTuple):
    """One fact in one language, with its question."""

    topic: str
    text: str
    question: str
    is_long: bool


TOPICS: dict[tuple[str, str], list[Fact]] = {
    ("Kitchen renovation", "Reforma de la cocina"): [
        Fact(
            "The carpenter will deliver the cupboards on the last Friday of October",
            "El carpintero entregará los armarios el último viernes de octubre",
            "When do we get the cabinets?",
            "¿Qué día llegan los muebles?",
        ),
        Fact(
            "We settled on grey granite for the worktop, marble stains too easily",
            "Elegimos granito gris para la encimera, el mármol se mancha con facilidad",
            "Which stone did we pick for the counter?",
            "¿De qué piedra será la superficie de trabajo?",
        ),
        Fact(
            "The electrician found that the old wiring has no earth and must be replaced",
            "El electricista descubrió que el cableado viejo no tiene toma de tierra y hay que cambiarlo",
            "What is wrong with the electricity?",
            "¿Qué problema hay con la instalación eléctrica?",
        ),
        Fact(
            "Total budget agreed with the builder: 14,300 euros including tax",
            "Presupuesto total acordado con el constructor: 14.300 euros con impuestos",
            "How much will the work cost us?",
            "¿Cuánto nos va a costar la obra?",
        ),
        Fact(
            "While there is no stove we cook on a camping burner in the garage",
            "Mientras no hay fogones cocinamos con un hornillo de acampada en el garaje",
            "Where are meals prepared for now?",
            "¿Dónde preparamos la comida de momento?",
        ),
    ],
    ("Marta Soler", "Marta Soler, colega"): [
        Fact(
            "Marta moved from Valencia to Bergen for love and never went back",
            "Marta se mudó de Valencia a Bergen por amor y nunca volvió",
            "Why did she leave Spain?",
            "¿Por qué dejó España?",
        ),
        Fact(
            "She cannot eat anything with gluten since she was diagnosed at thirty",
            "No puede comer nada con gluten desde que la diagnosticaron a los treinta",
            "Does Marta have any dietary restriction?",
            "¿Tiene Marta alguna restricción en la dieta?",
        ),
        Fact(
            "Her doctoral thesis was about the acoustics of Romanesque churches",
            "Su tesis doctoral trató de la acústica de las iglesias románicas",
            "What did she research at university?",
            "¿Qué investigó en la universidad?",
        ),
        Fact(
            "Marta rides a recumbent bicycle to the office even when it snows",
            "Marta va a la oficina en una bicicleta reclinada incluso cuando nieva",
            "How does she commute in winter?",
            "¿Cómo llega al trabajo en invierno?",
        ),
        Fact(
            "She hates surprise meetings and wants an agenda one day ahead",
            "Detesta las reuniones sorpresa y quiere un orden del día con un día de antelación",
            "What should I send her before we talk?",
            "¿Qué debo enviarle antes de una charla?",
        ),
    ],
    ("Payments service", "Servicio de pagos"): [
        Fact(
            "Retries are capped at five, with the delay doubling each time",
            "Los reintentos se limitan a cinco y la espera se duplica cada vez",
            "What happens when a request fails repeatedly?",
            "¿Qué ocurre cuando una petición falla varias veces?",
        ),
        Fact(
            "Card numbers are never stored; we keep a token from the provider",
            "Los números de tarjeta nunca se guardan; conservamos un identificador del proveedor",
            "Do we save credit card data?",
            "¿Almacenamos los datos de las tarjetas de crédito?",
        ),
        Fact(
            "The nightly reconciliation compares our ledger with the bank's file",
            "La conciliación nocturna compara nuestro libro con el fichero del banco",
            "How do we know that the accounts match?",
            "¿Cómo comprobamos que las cuentas cuadran?",
        ),
        Fact(
            "It is written in Go since the Python version leaked memory under load",
            "Está escrito en Go porque la versión en Python perdía memoria bajo carga",
            "Why was the language switched?",
            "¿Por qué se cambió de lenguaje de programación?",
        ),
        Fact(
            "Refunds above 500 euros need the approval of two people",
            "Las devoluciones de más de 500 euros requieren la aprobación de dos personas",
            "Who has to agree before a large sum is given back?",
            "¿Quién debe autorizar que se reintegre un importe alto?",
        ),
    ],
    ("Vegetable garden", "Huerto"): [
        Fact(
            "Slugs ate all the young lettuces in one night in May",
            "Las babosas se comieron todas las lechugas pequeñas en una noche de mayo",
            "What destroyed the salad plants?",
            "¿Qué destruyó las plantas de ensalada?",
        ),
        Fact(
            "Tomatoes go along the south wall, where it stays warm after sunset",
            "Los tomates van junto al muro sur, que sigue caliente después de anochecer",
            "Which spot is best for the warmth-loving plants?",
            "¿Cuál es el mejor sitio para las plantas que quieren calor?",
        ),
        Fact(
            "Rainwater from the roof fills a barrel of 300 litres",
            "El agua de lluvia del tejado llena un bidón de 300 litros",
            "How do we water without using the tap?",
            "¿Cómo regamos sin usar el grifo?",
        ),
        Fact(
            "The neighbour's hens provide the manure in exchange for courgettes",
            "Las gallinas del vecino dan el estiércol a cambio de calabacines",
            "Where does the fertiliser come from?",
            "¿De dónde sacamos el abono?",
        ),
        Fact(
            "Garlic is planted in November and lifted when the leaves turn yellow",
            "El ajo se planta en noviembre y se arranca cuando las hojas amarillean",
            "When is garlic ready to be harvested?",
            "¿Cuándo está el ajo listo para la cosecha?",
        ),
    ],
    ("Grandfather Emil", "El abuelo Emil"): [
        Fact(
            "Emil repaired watches in a shop beside the railway station for forty years",
            "Emil reparó relojes durante cuarenta años en una tienda junto a la estación de tren",
            "What was his profession?",
            "¿Cuál era su oficio?",
        ),
        Fact(
            "He lost two fingers of his left hand in the war and never spoke of it",
            "Perdió dos dedos de la mano izquierda en la guerra y nunca habló de ello",
            "How was he wounded?",
            "¿Qué herida sufrió?",
        ),
        Fact(
            "Every Sunday he baked plum cake from his mother's handwritten recipe",
            "Cada domingo horneaba tarta de ciruelas con la receta manuscrita de su madre",
            "What dessert did he use to make?",
            "¿Qué postre solía hacer?",
        ),
        Fact(
            "He played chess by post with a man in Argentina whom he never met",
            "Jugaba al ajedrez por correo con un hombre de Argentina al que nunca conoció",
            "Who was his opponent abroad?",
            "¿Con quién se enfrentaba a distancia?",
        ),
        Fact(
            "The doctor told him to give up tobacco; he switched to liquorice",
            "El médico le ordenó dejar el tabaco; se pasó al regaliz",
            "How did he stop smoking?",
            "¿Cómo dejó de fumar?",
        ),
    ],
    ("Trip to Japan", "Viaje a Japón"): [
        Fact(
            "The rail pass must be bought before leaving Europe, it costs more there",
            "El abono de tren hay que comprarlo antes de salir de Europa, allí cuesta más",
            "What should we purchase in advance?",
            "¿Qué conviene adquirir por adelantado?",
        ),
        Fact(
            "In Kyoto we sleep in a temple where silence begins at nine",
            "En Kioto dormimos en un templo donde el silencio empieza a las nueve",
            "Where do we spend the night in the old capital?",
            "¿Dónde pasamos la noche en la antigua capital?",
        ),
        Fact(
            "Shoes come off at every house, so pack socks without holes",
            "En cada casa hay que descalzarse, así que lleva calcetines sin agujeros",
            "Any advice about clothing?",
            "¿Algún consejo sobre la ropa?",
        ),
        Fact(
            "Typhoon season ends in early October, flights are often delayed before",
            "La temporada de tifones acaba a principios de octubre; antes los vuelos suelen retrasarse",
            "Is bad weather a risk for our plane?",
            "¿Puede el mal tiempo afectar a nuestro avión?",
        ),
        Fact(
            "Many small restaurants take only cash",
            "Muchos restaurantes pequeños solo aceptan efectivo",
            "Can we pay by card when eating out?",
            "¿Se puede pagar con tarjeta al comer fuera?",
        ),
    ],
    ("Cat Miso", "La gata Miso"): [
        Fact(
            "Miso takes half a pill for her thyroid every morning, hidden in tuna",
            "Miso toma cada mañana media pastilla para la tiroides, escondida en atún",
            "What medicine does the cat need?",
            "¿Qué medicamento necesita el animal?",
        ),
        Fact(
            "She is terrified of the vacuum cleaner and hides behind the piano",
            "Le aterra la aspiradora y se esconde detrás del piano",
            "Where can the cat be found when we clean?",
            "¿Dónde se mete cuando limpiamos?",
        ),
        Fact(
            "The chip number is on the blue card in the desk drawer",
            "El número del chip está en la tarjeta azul del cajón del escritorio",
            "How can we prove whose pet it is?",
            "¿Dónde está la identificación de la mascota?",
        ),
        Fact(
            "Our neighbour Petra feeds her while we are on holiday",
            "Nuestra vecina Petra le da de comer cuando estamos de vacaciones",
            "Who takes care of her during our absence?",
            "¿Quién la cuida en nuestra ausencia?",
        ),
        Fact(
            "She was found as a kitten in a cardboard box under the bridge",
            "La encontraron de cachorra en una caja de cartón debajo del puente",
            "How did she come to us?",
            "¿Cómo llegó a nosotros?",
        ),
    ],
    ("Choir", "Coro"): [
        Fact(
            "Rehearsals moved to Tuesday because the hall is taken on Wednesdays",
            "Los ensayos pasaron al martes porque la sala está ocupada los miércoles",
            "On which evening do we practise now?",
            "¿Qué tarde practicamos ahora?",
        ),
        Fact(
            "We are short of tenors; only two are left since Ole retired",
            "Nos faltan tenores; solo quedan dos desde que Ole se retiró",
            "Which voices are we looking for?",
            "¿Qué voces estamos buscando?",
        ),
        Fact(
            "The summer concert raised 2,100 for the children's hospital",
            "El concierto de verano recaudó 2.100 para el hospital infantil",
            "Whom did the charity performance benefit?",
            "¿A quién benefició la actuación solidaria?",
        ),
        Fact(
            "The conductor wants us to sing from memory, no sheets on stage",
            "La directora quiere que cantemos de memoria, sin partituras en el escenario",
            "May we read the music during the show?",
            "¿Podemos leer las notas durante la función?",
        ),
        Fact(
            "New robes are dark green and must be ironed by oneself",
            "Las túnicas nuevas son verde oscuro y cada uno plancha la suya",
            "What do we wear when performing?",
            "¿Qué nos ponemos para actuar?",
        ),
    ],
    ("Server room", "Sala de servidores"): [
        Fact(
            "The backup tapes are driven to a bank vault every Monday",
            "Las cintas de copia se llevan cada lunes a la cámara de un banco",
            "Where are the copies of our data kept?",
            "¿Dónde se guardan las copias de nuestros datos?",
        ),
        Fact(
            "When the temperature passes 30 degrees half of the machines shut down",
            "Cuando la temperatura pasa de 30 grados se apaga la mitad de las máquinas",
            "What does the system do if it gets too hot?",
            "¿Qué hace el sistema si hay demasiado calor?",
        ),
        Fact(
            "Only Ingrid and Tomas have a key; visitors sign a paper list",
            "Solo Ingrid y Tomás tienen llave; las visitas firman una lista en papel",
            "Who can get in?",
            "¿Quién puede entrar?",
        ),
        Fact(
            "The diesel generator starts within eight seconds of a power cut",
            "El generador diésel arranca a los ocho segundos de un corte de luz",
            "What keeps us running during a blackout?",
            "¿Qué nos mantiene en marcha durante un apagón?",
        ),
        Fact(
            "Rack 7 is reserved for the university and billed every quarter",
            "El armario 7 está reservado para la universidad y se factura cada trimestre",
            "Which customer rents space from us?",
            "¿Qué cliente nos alquila espacio?",
        ),
    ],
    ("Marathon plan", "Plan de maratón"): [
        Fact(
            "Long runs on Saturday, never more than three hours",
            "Tiradas largas el sábado, nunca de más de tres horas",
            "What is the limit for the weekend training?",
            "¿Cuál es el límite del entrenamiento del fin de semana?",
        ),
        Fact(
            "My left knee hurts downhill, the physiotherapist prescribed squats",
            "Me duele la rodilla izquierda cuesta abajo; el fisioterapeuta mandó sentadillas",
            "Which injury am I treating, and how?",
            "¿Qué lesión me estoy tratando y cómo?",
        ),
        Fact(
            "The goal is to finish under four hours in Porto",
            "El objetivo es terminar en menos de cuatro horas en Oporto",
            "What time do I hope for in the race?",
            "¿Qué marca espero en la carrera?",
        ),
        Fact(
            "Gels upset my stomach, dates and salt work better",
            "Los geles me sientan mal; los dátiles y la sal funcionan mejor",
            "What should I eat on the way?",
            "¿Qué debo comer por el camino?",
        ),
        Fact(
            "Two weeks before the start I halve the distance and sleep more",
            "Dos semanas antes de la salida reduzco la distancia a la mitad y duermo más",
            "How do I rest before the big day?",
            "¿Cómo descanso antes del gran día?",
        ),
    ],
    ("Bookshop", "Librería"): [
        Fact(
            "The poetry shelf sells best in December, as presents",
            "La estantería de poesía se vende más en diciembre, para regalar",
            "When do people buy verses?",
            "¿Cuándo compra la gente versos?",
        ),
        Fact(
            "Schoolbooks may be returned until the end of September with the receipt",
            "Los libros de texto se pueden devolver hasta fin de septiembre con el tique",
            "What is the rule for giving back things for class?",
            "¿Qué norma hay para las devoluciones de material de clase?",
        ),
        Fact(
            "A leak in the attic ruined eighty old atlases",
            "Una gotera en el desván estropeó ochenta atlas antiguos",
            "Which items were damaged by water?",
            "¿Qué artículos dañó el agua?",
        ),
        Fact(
            "Thursday evenings an author reads aloud and the wine is free",
            "Los jueves por la noche un autor lee en voz alta y el vino es gratis",
            "Are there any events for customers?",
            "¿Hay algún evento para los clientes?",
        ),
        Fact(
            "The landlord raised the rent by nine percent from January",
            "El propietario subió el alquiler un nueve por ciento desde enero",
            "What made the premises more expensive?",
            "¿Por qué es más caro el local?",
        ),
    ],
    ("Sofia at school", "Sofía en el colegio"): [
        Fact(
            "Sofia is two years ahead in mathematics and bored in class",
            "Sofía va dos cursos por delante en matemáticas y se aburre en clase",
            "Which subject is too easy for her?",
            "¿Qué asignatura le resulta demasiado fácil?",
        ),
        Fact(
            "She shares her lunch with Amir, who often brings none",
            "Comparte el almuerzo con Amir, que muchas veces no trae",
            "What does she do for her classmate?",
            "¿Qué hace por su compañero?",
        ),
        Fact(
            "The teacher suggests glasses, she squints at the blackboard",
            "La maestra sugiere gafas, porque entorna los ojos al mirar la pizarra",
            "Is there a concern about her eyesight?",
            "¿Hay alguna preocupación por su vista?",
        ),
        Fact(
            "The class spends a week in June at a farm in the mountains",
            "La clase pasa una semana de junio en una granja en la montaña",
            "Where is the school excursion?",
            "¿Adónde es la excursión del colegio?",
        ),
        Fact(
            "She plays the witch in the school play and needs a black hat",
            "Hace de bruja en la obra del colegio y necesita un sombrero negro",
            "What costume must we get?",
            "¿Qué disfraz hay que conseguir?",
        ),
    ],
}

LONG: list[Fact] = [
    Fact(
        "Notes after the visit to the cooperative. They grow olives on 140 hectares, most of them on terraces that no "
        "machine can reach, so the harvest is done by hand between November and January. The president showed us the "
        "new mill, which presses within six hours of picking; before, the fruit waited for up to three days and the "
        "oil was bitter. They export a third to Germany and would like to sell more at home, but the supermarkets pay "
        "late and demand discounts. What worries them most is water: the well had to be deepened twice in five years. "
        "A young agronomist is testing sensors in the soil that open the valves only where roots are dry, and she says "
        "that it already saves forty percent. We agreed to come back in spring with a proposal for labels that tell "
        "which terrace each bottle comes from.",
        "Notas tras la visita a la cooperativa. Cultivan olivos en 140 hectáreas, la mayoría en bancales a los que no "
        "llega ninguna máquina, de modo que la cosecha se hace a mano entre noviembre y enero. El presidente nos enseñó "
        "la almazara nueva, que prensa antes de seis horas desde la recogida; antes la aceituna esperaba hasta tres "
        "días y el aceite salía amargo. Exportan un tercio a Alemania y querrían vender más aquí, pero los "
        "supermercados pagan tarde y exigen descuentos. Lo que más les preocupa es el agua: en cinco años hubo que "
        "ahondar el pozo dos veces. Una joven agrónoma prueba sensores en la tierra que abren las válvulas solo donde "
        "las raíces están secas, y dice que ya ahorra un cuarenta por ciento. Quedamos en volver en primavera con una "
        "propuesta de etiquetas que digan de qué bancal viene cada botella.",
        "How do the olive growers cope with the drought?",
        "¿Cómo afrontan la sequía los productores de aceite?",
    ),
    Fact(
        "Incident report, second of March. At 02:14 the monitoring raised an alert because the queue of outgoing mail "
        "had grown to ninety thousand messages. The engineer on call restarted the workers, which did not help. At "
        "02:40 she noticed that all of them were waiting for a lock held by a migration that somebody had begun by "
        "hand on the evening before and forgotten in an open terminal. The session was ended at 02:52 and the queue "
        "drained within half an hour. No message was lost, but newsletters arrived at night and eleven subscribers "
        "complained. What we change: migrations run only from the pipeline, a transaction older than ten minutes is "
        "killed by itself, and the alert now tells which query holds the lock. The review lasted forty minutes and "
        "blamed nobody.",
        "Informe de incidencia, dos de marzo. A las 02:14 la monitorización avisó de que la cola de correo saliente "
        "había crecido hasta noventa mil mensajes. La ingeniera de guardia reinició los procesos, sin resultado. A las "
        "02:40 se dio cuenta de que todos esperaban un bloqueo retenido por una migración que alguien había empezado a "
        "mano la tarde anterior y olvidado en un terminal abierto. La sesión se cerró a las 02:52 y la cola se vació en "
        "media hora. No se perdió ningún mensaje, pero los boletines llegaron de noche y se quejaron once suscriptores. "
        "Qué cambiamos: las migraciones solo se lanzan desde el sistema de despliegue, una transacción de más de diez "
        "minutos se corta sola y el aviso dice ahora qué consulta retiene el bloqueo. La revisión duró cuarenta "
        "minutos y no culpó a nadie.",
        "What caused the mail outage in March?",
        "¿Qué causó la avería del correo en marzo?",
    ),
    Fact(
        "Diary, Saturday. Slept badly, the upstairs neighbours had guests until three. In the morning to the market "
        "with Clara; she bought a lamp for her mother which turned out to be broken, so we went back and had to argue "
        "for a quarter of an hour until the man exchanged it. Lunch at the harbour, sardines, far too much bread. In "
        "the afternoon I finally wrote to my brother after all these months. I told him that I was sorry about what I "
        "said at the funeral, that I had been angry with the whole world and not with him, and that I would like to "
        "see the children. I carried the letter around for two hours before I dared to post it. Clara says that he "
        "will answer. In the evening we watched an old film and I fell asleep before the murderer was found.",
        "Diario, sábado. Dormí mal, los vecinos de arriba tuvieron invitados hasta las tres. Por la mañana al mercado "
        "con Clara; compró una lámpara para su madre que resultó estar rota, así que volvimos y hubo que discutir un "
        "cuarto de hora hasta que el hombre la cambió. Comida en el puerto, sardinas, demasiado pan. Por la tarde por "
        "fin escribí a mi hermano después de tantos meses. Le dije que sentía lo que dije en el funeral, que estaba "
        "enfadado con el mundo entero y no con él, y que me gustaría ver a los niños. Llevé la carta encima dos horas "
        "antes de atreverme a echarla. Clara dice que contestará. Por la noche vimos una película antigua y me dormí "
        "antes de que encontraran al asesino.",
        "Did I ever apologise to my sibling?",
        "¿Llegué a pedir perdón a mi familiar?",
    ),
    Fact(
        "Minutes of the owners' meeting. Fourteen of twenty flats were present or represented. The accounts of last "
        "year were approved with one abstention. The lift: the inspection demands a new control unit before June, "
        "offers between 6,800 and 9,200; the cheaper one is taken if the firm confirms the date in writing. The "
        "request of the third floor to keep two beehives on the roof was discussed for a long time. Those against "
        "fear for a child who is allergic to stings; those in favour offered to pay for a fence and the insurance. It "
        "was decided to try one hive for a year and to vote again. The caretaker's contract is extended; she asks "
        "that nobody leaves bulky rubbish in the yard. The heating will be bled in the first week of October, "
        "somebody must be at home.",
        "Acta de la junta de propietarios. Catorce de los veinte pisos estuvieron presentes o representados. Las "
        "cuentas del año pasado se aprobaron con una abstención. El ascensor: la inspección exige un cuadro de mando "
        "nuevo antes de junio, ofertas entre 6.800 y 9.200; se acepta la más barata si la empresa confirma la fecha "
        "por escrito. La petición del tercero de tener dos colmenas en la azotea se debatió largo rato. Los que están "
        "en contra temen por un niño alérgico a las picaduras; los partidarios se ofrecieron a pagar una valla y el "
        "seguro. Se decidió probar con una colmena durante un año y volver a votar. Se prorroga el contrato de la "
        "conserje; pide que nadie deje trastos en el patio. Los radiadores se purgarán la primera semana de octubre y "
        "alguien debe estar en casa.",
        "What did the residents decide about the bees?",
        "¿Qué resolvieron los vecinos sobre las abejas?",
    ),
    Fact(
        "How we choose suppliers. First we ask three companies for an offer with the same list, so that prices can be "
        "compared. Quality counts half, price a third, and the rest is how they treat their people; somebody from us "
        "visits the plant before the first order and looks at the safety of the machines, the working hours and "
        "whether there is a union. Two years ago we left a maker of buttons, although he was the cheapest by far, "
        "because we found children at the packing tables. Contracts run for one year and end by themselves. Payment "
        "is after thirty days, never later, since small firms cannot wait. Complaints go to Beatriz, who keeps a list "
        "and shows it at the quarterly meeting. A supplier with three serious complaints in a year is not asked again.",
        "Cómo elegimos proveedores. Primero pedimos a tres empresas una oferta con la misma lista, para poder comparar "
        "precios. La calidad cuenta la mitad, el precio un tercio, y el resto es cómo tratan a su gente; alguien de "
        "nosotros visita la planta antes del primer pedido y mira la seguridad de las máquinas, los horarios y si hay "
        "sindicato. Hace dos años dejamos a un fabricante de botones, aunque era con diferencia el más barato, porque "
        "encontramos niños en las mesas de embalaje. Los contratos duran un año y terminan solos. Se paga a treinta "
        "días, nunca más tarde, porque las empresas pequeñas no pueden esperar. Las quejas van a Beatriz, que lleva "
        "una lista y la enseña en la reunión trimestral. A un proveedor con tres quejas graves en un año no se le "
        "vuelve a preguntar.",
        "With whom did we stop working because of child labour?",
        "¿Con quién dejamos de trabajar por explotación infantil?",
    ),
    Fact(
        "Travel journal, day nine. The bus to the coast left two hours late because the driver waited for his cousin, "
        "who never came. We shared our oranges with a soldier on leave; he taught us to count to ten in his language "
        "and drew a map of his village in my notebook. At the pass there was fog so thick that somebody had to walk in "
        "front with a lantern. We reached the guest house after midnight, the owner had kept soup for us. In the night "
        "the earth shook: not strongly, the bottles rang on the shelf and the dogs barked, but I lay awake until "
        "morning. The owner laughed at breakfast and said that it happens every month. Tomorrow we want to hire a boat "
        "to the island with the monastery, if the sea is calm.",
        "Diario de viaje, día nueve. El autobús a la costa salió dos horas tarde porque el conductor esperaba a su "
        "primo, que nunca llegó. Compartimos las naranjas con un soldado de permiso; nos enseñó a contar hasta diez en "
        "su lengua y dibujó un mapa de su pueblo en mi cuaderno. En el puerto de montaña había una niebla tan espesa "
        "que alguien tuvo que andar delante con un farol. Llegamos a la pensión pasada la medianoche; la dueña nos "
        "había guardado sopa. Por la noche tembló la tierra: no fuerte, las botellas sonaron en el estante y ladraron "
        "los perros, pero no pegué ojo hasta la mañana. La dueña se rio en el desayuno y dijo que pasa todos los "
        "meses. Mañana queremos alquilar una barca a la isla del monasterio, si el mar está en calma.",
        "Did we experience an earthquake?",
        "¿Vivimos algún terremoto?",
    ),
    Fact(
        "Therapy notes for myself. We spoke about why I say yes to everything. She asked me to remember the first time "
        "that I refused something, and I could not think of one before I was twenty-six, when I turned down the job in "
        "my uncle's firm. He did not speak to me for a year and my mother cried at Christmas. So it seems that I "
        "learned early that a no costs love. The exercise until next time: refuse one small thing every day, without "
        "giving a reason, and write down what happens. So far: I did not lend the drill, nobody died. I did not answer "
        "a message on Sunday; the colleague did not even notice. I notice that my shoulders hurt less. The next "
        "appointment is on the nineteenth at five, and she is on holiday afterwards for three weeks.",
        "Notas de terapia para mí. Hablamos de por qué digo que sí a todo. Me pidió que recordara la primera vez que me "
        "negué a algo, y no se me ocurrió ninguna antes de los veintiséis, cuando rechacé el puesto en la empresa de mi "
        "tío. Él no me habló durante un año y mi madre lloró en Navidad. Así que parece que aprendí pronto que un no "
        "cuesta cariño. El ejercicio hasta la próxima vez: negarme a una cosa pequeña cada día, sin dar razones, y "
        "apuntar qué pasa. De momento: no presté el taladro, no murió nadie. No contesté un mensaje el domingo; el "
        "colega ni se dio cuenta. Noto que me duelen menos los hombros. La próxima cita es el diecinueve a las cinco, y "
        "después ella tiene tres semanas de vacaciones.",
        "What homework did the psychologist give me?",
        "¿Qué tarea me puso la psicóloga?",
    ),
    Fact(
        "Thoughts on the new search page. Testers found the field quickly but most of them typed whole sentences, "
        "which the old index cannot handle, so half of the tries ended without a result. Those who got a list looked "
        "at the first three entries and no further. Nobody used the filters on the left; two people believed that they "
        "were advertisements. An older man enlarged the letters until the buttons fell off the screen. What they liked: "
        "that the page remembers what was opened before, and that it is fast. My proposal is to drop the filters, to "
        "let people ask in plain language, and to test with the text at double size from the beginning. Lena disagrees "
        "about the filters, since librarians need them; she will ask five of them before we decide.",
        "Ideas sobre la página de búsqueda nueva. Los participantes encontraron el campo enseguida, pero la mayoría "
        "escribió frases enteras, que el índice viejo no entiende, y la mitad de los intentos acabó sin resultado. "
        "Quienes obtuvieron una lista miraron las tres primeras entradas y nada más. Nadie usó los filtros de la "
        "izquierda; dos personas creyeron que eran anuncios. Un señor mayor agrandó las letras hasta que los botones "
        "se salieron de la pantalla. Lo que gustó: que la página recuerda lo que se abrió antes, y que es rápida. Mi "
        "propuesta es quitar los filtros, dejar que la gente pregunte con sus palabras y probar desde el principio con "
        "el texto al doble de tamaño. Lena no está de acuerdo con lo de los filtros, porque los bibliotecarios los "
        "necesitan; preguntará a cinco antes de que decidamos.",
        "Who objected to removing the side panel, and why?",
        "¿Quién se opuso a eliminar el panel lateral y por qué?",
    ),
]


def notes(language: str) -> list[Note]:
    """All of it in one language, in the same order in each."""
    place = LANGUAGES.index(language)
    found = [
        Note(names[place], fact[place], fact[2 + place], False) for names, facts in TOPICS.items() for fact in facts
    ]
    journal = ("Journal", "Cuaderno")[place]
    return found + [Note(journal, fact[place], fact[2 + place], True) for fact in LONG]
