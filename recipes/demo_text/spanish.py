"""Spanish."""

from demo_text.stock import PEOPLE, Stock, lines, topic, words

SPANISH = Stock(
    slots={
        "place": words("Valdeoro, San Aurelio, Montealto, La Ribera, Puente Viejo, Campofrío, Arroyo Claro, Peñasol"),
        "person": PEOPLE,
        "month": words("enero, marzo, abril, mayo, junio, septiembre, octubre, noviembre"),
        "thing": words("linterna, fuente, campana, carreta, puerta, escalera, bodega, bomba, ventana, mesa"),
        "group": words("voluntarios, alumnos, vecinos, campesinos, niños, caminantes, aprendices, visitantes"),
        "adj": words("humilde, útil, frágil, fuerte, notable, amable, grande, especial"),
    },
    openings=lines(
        """
        En la primavera de {year}
        Después de casi {n} años de trabajo
        Según el archivo de {place}
        A la salida de {place}
        A pesar de un comienzo difícil
        Con la ayuda de {person}
        Desde el verano de {year}
        Una mañana fría de {month}
        Para sorpresa de los {group}
        Durante el largo invierno siguiente
        """
    ),
    tails=lines(
        """
        porque los inviernos eran cada vez más largos
        aunque el precio fue más alto de lo previsto
        algo que nadie esperaba en aquel tiempo
        y los {group} todavía hablan de ello
        antes del final de las obras en {year}
        mientras el consejo de {place} seguía discutiendo
        como escribió {person} en una carta al periódico
        sin pedir dinero a nadie
        cuando el tiempo lo permite y la tierra está seca
        y eso cambió mucho la vida del pueblo
        """
    ),
    subjects=lines(
        """
        la asociación de {group}
        el pequeño equipo de {person}
        el pueblo de {place}
        un informe de {year}
        la casa al lado de la iglesia
        una {thing} muy {adj}
        """
    ),
    predicates=lines(
        """
        guarda | un registro de cada reparación desde {year}
        recibe | unas {count} cartas al año de todo el país
        necesita | un techo nuevo antes del próximo invierno
        muestra | en {n} paneles grandes el trabajo de los {group}
        está | entre una {thing} y una fila de árboles viejos
        ganó | un premio de {count} euros por sus ideas
        pide | a cada casa una buena historia y una foto antigua
        queda | a {n} minutos a pie de la estación de {place}
        perdió | una parte del muro en la tormenta de {year}
        forma | cada año a {n} jóvenes de la región
        reúne | a los {group} de {place} y a los {group} de {place}
        tiene | una colección de {count} fotografías en una sala seca
        """
    ),
    sentences=lines(
        """
        «Queríamos construir algo que durara», cuenta {person} con una sonrisa.
        Quien llega en tren debe bajar en {place} y seguir el camino junto al agua.
        De los {count} euros necesarios, más o menos la mitad vino de los {group}.
        ¿Qué hace falta para cuidar una {thing} como esta?
        Hace falta tiempo, un poco de madera y al menos {n} personas que conozcan el oficio.
        El primer intento salió mal, el segundo fue mejor y el tercero se puede visitar todavía.
        En {month} abre de diez a cuatro, y los niños no pagan entrada.
        Es fácil olvidar que casi todo esto se hizo a mano.
        """
    ),
    topics={
        "huerto": topic(
            "Un huerto en {place}, Verduras para {n} familias, Lo que cuenta la tierra de {place}",
            """
            el viejo huerto detrás de la iglesia
            un manzano cerca de la {thing}
            la parcela de {person}
            el compost del fondo del patio
            """,
            """
            da | unos {count} kilos de fruta y verdura en los años buenos
            atrae | abejas y mariposas en cuanto florece la lavanda
            sufre | mucho por los caracoles después de un {month} lluvioso
            crece | mejor en una ladera que mira hacia el sur
            contiene | {n} variedades que ya no se encuentran en las tiendas
            pide | un poco de ceniza, hojas secas y mucha paciencia
            conserva | el agua mucho más tiempo que la arena del río
            alimenta | a los {group} del barrio durante todo el otoño
            """,
        ),
        "tren": topic(
            "El pequeño tren de {place}, La estación junto al río, Con vapor por el valle de {place}",
            """
            el pequeño tren del valle
            una locomotora de {year}
            la estación de {place}
            el tren de la tarde hacia {place}
            """,
            """
            llevaba | carbón, leche y {count} viajeros por semana
            cruza | el río por un puente de {n} arcos
            circula | solamente los domingos, entre mayo y octubre
            gasta | casi una tonelada de carbón al día
            espera | {n} minutos el enlace de {place}
            alcanza | {n} kilómetros por hora en la recta del lago
            mantiene | sus lámparas originales y un horario de {year}
            pasa | por un túnel donde cae agua todo el año
            """,
        ),
        "pan": topic(
            "Pan de leña, Los panaderos de {place}, Por qué la masa espera {n} horas",
            """
            la panadería de la plaza
            un pan de centeno y cebada
            la masa en su larga caja de madera
            la harina del molino de {place}
            """,
            """
            reposa | {n} horas en un cuarto fresco debajo de la escalera
            huele | a nueces, a manzana y a grano tostado
            queda | tierno varios días dentro de un paño limpio
            vende | cerca de {count} panecillos antes de las siete
            necesita | solamente sal, agua, harina y tiempo
            viene | de los campos que se ven desde la torre de {place}
            sale | ácido y pesado cuando el cuarto está demasiado caliente
            gusta | a los {group} con aceite y un poco de sal
            """,
        ),
    },
    furniture={
        "nav": "Inicio|Noticias|Lugares|Personas|Archivo|Quiénes somos|Contacto",
        "cookie": "Este sitio utiliza cookies. Consulte nuestra política de privacidad. Aceptar todo",
        "related": "También le puede interesar",
        "share": "Compartir esta página",
        "footer": "Todos los derechos reservados. Condiciones de uso. Privacidad. Aviso legal",
        "by": "Por {person}, {n} de {month} de {year}",
        "comments": "3 comentarios",
        "newsletter": "Suscríbase a nuestro boletín",
        "script": "Active JavaScript para usar todas las funciones.",
    },
)
