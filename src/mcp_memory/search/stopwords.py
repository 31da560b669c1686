"""Words that carry no subject, in Spanish and English, folded. Ours: collected for questions put to a memory."""

from __future__ import annotations

SPANISH = """
a al algo alguien alguna algunas alguno algunos ante antes aquel aquella aquello asi aun aunque cada casi como con
contra cosa cosas cual cuales cualquier cuando cuanta cuantas cuanto cuantos de del desde donde dos e el ella ellas
ello ellos en entre era eran eres es esa esas ese eso esos esta estaba estaban estado estamos estan estar estas este
esto estos estoy fue fueron ha habia habian hace hacer haces hacia han has hasta hay he hemos hizo la las le les lo los
mas me mi mia mias mientras mio mios mis mucha muchas mucho muchos muy nada ni no nos nosotras nosotros nuestra
nuestras nuestro nuestros nunca o os otra otras otro otros para pero poca poco pocos por porque pues puede pueden que
quien quienes se sea sean segun ser si sido siempre sin sobre sois somos son soy su sus suya suyas suyo suyos tal
tambien tampoco tan tanto te tenemos tener tengo tenia ti tiene tienen toda todas todo todos tu tus tuya tuyo un una
unas uno unos usted ustedes va vamos van vosotras vosotros voy y ya yo
"""

ENGLISH = """
a about above after again all also am an and any are as at be because been before being below between both but by can
could did do does doing done down during each else ever every few for from further get gets got had has have having he
her here hers herself him himself his how i if in into is it its itself just let like many may me might more most much
must my myself no nor not now of off on once one only or other our ours out over own please really same shall she
should so some such tell than that the their theirs them themselves then there these they thing things this those
through to too under until up upon us very was we were what when where whether which while who whom whose why will
with within without would yes yet you your yours
"""

SPANISH_WORDS = frozenset(SPANISH.split())
ENGLISH_WORDS = frozenset(ENGLISH.split())
STOP_WORDS = SPANISH_WORDS | ENGLISH_WORDS
