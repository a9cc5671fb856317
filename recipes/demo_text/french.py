"""French."""

from demo_text.stock import PEOPLE, Stock, lines, topic, words

FRENCH = Stock(
    slots={
        "place": words(
            "Valbrune, Saint-Aubert, Montclair, La Roselière, Pontvieux, Bellegrange, Champfleur, Rocheverte"
        ),
        "person": PEOPLE,
        "month": words("janvier, mars, avril, mai, juin, septembre, octobre, novembre"),
        "thing": words("lanterne, grange, fontaine, carte, cloche, charrette, porte, échelle, horloge, pompe"),
        "group": words("bénévoles, élèves, voisins, paysans, enfants, promeneurs, apprentis, familles"),
        "adj": words("modeste, utile, rare, fragile, solide, tranquille, remarquable, étrange"),
    },
    openings=lines(
        """
        Au printemps de l'année {year}
        Après presque {n} ans de travail
        Selon les archives de {place}
        À la sortie de {place}
        Malgré des débuts difficiles
        Grâce à l'aide de {person}
        Depuis l'été {year}
        Un matin froid de {month}
        À la surprise des {group}
        Pendant le long hiver qui suivit
        """
    ),
    tails=lines(
        """
        parce que les hivers étaient devenus plus longs
        bien que le prix soit plus élevé que prévu
        ce que personne n'avait imaginé à l'époque
        et les {group} en parlent encore aujourd'hui
        avant la fin des travaux en {year}
        pendant que le conseil de {place} discutait encore
        comme {person} l'a écrit dans une lettre au journal
        sans demander d'argent à personne
        quand le temps le permet et que le sol est sec
        et cela a beaucoup changé la vie du village
        """
    ),
    subjects=lines(
        """
        l'association des {group}
        la petite équipe de {person}
        la commune de {place}
        un rapport de {year}
        la maison à côté de l'église
        une {thing} très {adj}
        """
    ),
    predicates=lines(
        """
        garde | une trace de chaque réparation depuis {year}
        reçoit | environ {count} lettres par an, venues de tout le pays
        attend | un nouveau toit en ardoise avant le prochain hiver
        montre | sur {n} grands panneaux le travail des {group}
        se trouve | entre une {thing} et une rangée de vieux arbres
        obtient | un prix de {count} euros pour ses idées
        demande | à chaque foyer une bonne histoire et une vieille photo
        reste | à {n} minutes à pied de la gare de {place}
        a perdu | une partie du mur pendant la tempête de {year}
        forme | chaque année {n} jeunes de la région
        réunit | les {group} de {place} et les {group} de {place}
        possède | une collection de {count} photographies dans une pièce sèche
        """
    ),
    sentences=lines(
        """
        « Nous voulions construire quelque chose qui dure », explique {person} avec un sourire.
        Ceux qui viennent en train descendent à {place} et suivent le chemin au bord de l'eau.
        Sur les {count} euros nécessaires, la moitié environ est venue des {group}.
        Que faut-il pour entretenir une {thing} comme celle-ci ?
        Il faut du temps, un peu de bois et au moins {n} personnes qui connaissent le métier.
        Le premier essai fut un échec, le deuxième fut meilleur, et le troisième se visite encore.
        En {month}, la porte est ouverte de dix heures à quatre heures, et les enfants ne paient pas.
        On oublie facilement que presque tout a été fait à la main.
        """
    ),
    topics={
        "jardin": topic(
            "Un jardin à {place}, Des légumes pour {n} familles, Ce que raconte la terre de {place}",
            """
            le vieux jardin derrière l'église
            un pommier près de la {thing}
            le potager de {person}
            le compost au fond de la cour
            """,
            """
            donne | environ {count} kilos de fruits et de légumes les bonnes années
            attire | les abeilles et les papillons dès que la lavande fleurit
            souffre | beaucoup des limaces après un mois de {month} humide
            pousse | mieux sur une pente qui regarde vers le sud
            contient | {n} variétés que l'on ne trouve plus dans les magasins
            demande | un peu de cendre, des feuilles mortes et de la patience
            retient | l'eau bien plus longtemps que le sable de la rivière
            nourrit | les {group} du quartier pendant tout l'automne
            """,
        ),
        "train": topic(
            "Le petit train de {place}, La gare au bord du fleuve, À la vapeur dans la vallée de {place}",
            """
            le petit train de la vallée
            une locomotive de {year}
            la gare de {place}
            le train du soir pour {place}
            """,
            """
            transportait | du charbon, du lait et {count} voyageurs par semaine
            traverse | la rivière sur un pont de {n} arches
            roule | seulement le dimanche, entre mai et octobre
            consomme | presque une tonne de charbon par jour
            attend | pendant {n} minutes la correspondance de {place}
            atteint | {n} kilomètres à l'heure sur la ligne droite près du lac
            conserve | ses lampes d'origine et un horaire de {year}
            passe | dans un tunnel où l'eau tombe toute l'année
            """,
        ),
        "pain": topic(
            "Le pain au feu de bois, Les boulangers de {place}, Pourquoi la pâte attend {n} heures",
            """
            la boulangerie de la place
            un pain de seigle et d'orge
            la pâte dans son long bac de bois
            la farine du moulin de {place}
            """,
            """
            repose | pendant {n} heures dans une pièce fraîche sous l'escalier
            sent | la noix, la pomme et le grain grillé
            reste | bon plusieurs jours dans un linge propre
            vend | près de {count} petits pains avant sept heures
            demande | seulement du sel, de l'eau, de la farine et du temps
            vient | des champs que l'on voit depuis la tour de {place}
            devient | acide et lourd quand la pièce est trop chaude
            plaît | aux {group} avec du beurre et un peu de sel
            """,
        ),
    },
    furniture={
        "nav": "Accueil|Actualités|Lieux|Portraits|Archives|À propos|Contact",
        "cookie": "Ce site utilise des cookies. Consultez notre politique de confidentialité. Tout accepter",
        "related": "À lire aussi",
        "share": "Partager cette page",
        "footer": "Tous droits réservés. Conditions d'utilisation. Confidentialité. Mentions légales",
        "by": "Par {person}, le {n} {month} {year}",
        "comments": "3 commentaires",
        "newsletter": "Recevoir notre lettre",
        "script": "Veuillez activer JavaScript pour utiliser toutes les fonctions.",
    },
)
