"""German."""

from demo_text.stock import PEOPLE, Stock, lines, topic, words

GERMAN = Stock(
    inverts=True,
    slots={
        "place": words(
            "Altenried, Moorbach, Steinhude am Hang, Lindau am Wald, Fuchsthal, Grünau, Oberkirchen, Seefeld"
        ),
        "person": PEOPLE,
        "month": words("Januar, März, April, Mai, Juni, August, September, Oktober, November"),
        "thing": words("Werkstatt, Brücke, Mühle, Scheune, Karte, Leiter, Glocke, Mauer, Laterne, Pumpe"),
        "group": words("Freiwilligen, Schülerinnen, Nachbarn, Bauern, Frauen, Studenten, Gärtnerinnen, Familien"),
        "adj": words("geduldige, sorgfältige, ungewöhnliche, bescheidene, überraschende, nützliche, stille, alte"),
    },
    openings=lines(
        """
        Im Sommer des Jahres {year}
        Nach fast {n} Jahren Arbeit
        Am Rand von {place}
        Laut einem Bericht aus {place}
        Kurz vor dem Ende des Krieges
        Mit der Hilfe der {group}
        Zur Freude der {group}
        An einem kalten Morgen im {month}
        Seit dem Frühjahr {year}
        Trotz aller Schwierigkeiten
        """
    ),
    tails=lines(
        """
        weil die Winter länger und nasser geworden waren
        obwohl die Kosten höher waren als geplant
        was damals niemand erwartet hatte
        und die {group} sprechen noch heute davon
        bevor die Arbeit im Jahr {year} endlich fertig war
        während der Gemeinderat von {place} noch beriet
        wie {person} in einem Brief an die Zeitung schrieb
        ohne jemanden um Geld zu bitten
        wenn das Wetter es erlaubt und der Boden trocken ist
        und das hat für das Dorf viel verändert
        """
    ),
    subjects=lines(
        """
        der Verein der {group}
        die kleine Gruppe um {person}
        die Gemeinde {place}
        ein Bericht aus dem Jahr {year}
        das Haus neben der Kirche
        die {adj} {thing} am Fluss
        """
    ),
    predicates=lines(
        """
        hat | seit {year} jede Reparatur in einem Heft festgehalten
        bekam | ungefähr {count} Briefe aus dem ganzen Land
        wurde | zum ersten Mal in einer Urkunde von {year} erwähnt
        braucht | vor dem nächsten Winter ein neues Dach aus Schiefer
        zeigt | auf {n} großen Tafeln die Arbeit der {group}
        steht | zwischen einer {thing} und einer Reihe alter Bäume
        gewann | für ihre Ideen einen Preis von {count} Euro
        bittet | jeden Haushalt um eine gute Geschichte und ein altes Foto
        liegt | nur {n} Minuten zu Fuß vom Bahnhof in {place} entfernt
        verlor | beim großen Sturm von {year} einen Teil der Mauer
        bildet | jedes Jahr {n} junge Menschen aus der Gegend aus
        verbindet | die {group} aus {place} mit den {group} aus {place}
        """
    ),
    sentences=lines(
        """
        „Wir wollten etwas bauen, das bleibt“, sagt {person}, und man glaubt es sofort.
        Wer mit dem Zug kommt, steigt in {place} aus und folgt dem Weg am Wasser entlang.
        Von den {count} Euro, die gebraucht wurden, kam etwa die Hälfte von den {group}.
        Was braucht man, um so eine {thing} zu erhalten?
        Man braucht Zeit, ein wenig Holz und mindestens {n} Leute, die wissen, was sie tun.
        Der erste Versuch ging schief, der zweite war besser, und der dritte ist bis heute zu sehen.
        Im {month} ist von zehn bis vier Uhr geöffnet, und Kinder zahlen keinen Eintritt.
        Es ist leicht zu vergessen, wie viel davon mit der Hand gemacht worden ist.
        """
    ),
    topics={
        "garten": topic(
            "Ein Garten in {place}, Gemüse für {n} Familien, Was der Boden von {place} erzählt",
            """
            der alte Garten hinter der Kirche
            ein Apfelbaum neben der {thing}
            das Beet mit den Bohnen und Kartoffeln
            der Kompost von {person}
            """,
            """
            liefert | in einem guten Jahr etwa {count} Kilo Obst und Gemüse
            hält | das Wasser viel länger als der Sand am Fluss
            lockt | Bienen und Schmetterlinge an, sobald der Lavendel blüht
            litt | nach dem nassen {month} sehr unter den Schnecken
            wächst | am besten an einem Hang, der nach Süden zeigt
            enthält | {n} Sorten, die es in keinem Laden mehr gibt
            braucht | nur im Frühjahr ein wenig Asche, Laub und Geduld
            erholt | sich langsam, wenn im {month} noch einmal Frost kommt
            """,
        ),
        "bahn": topic(
            "Die kleine Bahn nach {place}, Ein Stellwerk am Fluss, Mit Dampf durch das Tal von {place}",
            """
            die schmale Bahn durch das Tal
            eine Lokomotive aus dem Jahr {year}
            der Bahnhof von {place}
            der Abendzug nach {place}
            """,
            """
            brachte | früher Kohle, Milch und {count} Fahrgäste in der Woche in die Stadt
            überquert | den Fluss auf einer Brücke mit {n} Bögen
            fährt | nur am Sonntag und nur von Mai bis Oktober
            verbraucht | an einem langen Tag fast eine Tonne Kohle
            wartet | {n} Minuten auf den Anschluss aus {place}
            wurde | mit Teilen aus einem alten Lager wieder hergestellt
            erreicht | auf der geraden Strecke am See {n} Kilometer in der Stunde
            behielt | ihre alten Lampen und einen Fahrplan von {year}
            """,
        ),
        "brot": topic(
            "Brot aus dem Steinofen, Die Bäcker von {place}, Warum guter Teig {n} Stunden braucht",
            """
            die Bäckerei am Markt
            ein Brot aus Roggen und Gerste
            der Teig in der langen Wanne
            das Mehl aus der Mühle von {place}
            """,
            """
            ruht | {n} Stunden in einem kühlen Raum unter der Treppe
            duftet | nach Nüssen, Äpfeln und geröstetem Korn
            bleibt | in einem Tuch aus Leinen mehrere Tage frisch
            verkauft | schon vor sieben Uhr rund {count} Brötchen
            braucht | nur Salz, Wasser, Mehl und sehr viel Zeit
            kommt | von Feldern, die man vom Turm in {place} sehen kann
            wird | sauer und schwer, wenn der Raum zu warm ist
            schmeckt | den {group} am besten mit Butter und ein wenig Salz
            """,
        ),
    },
    furniture={
        "nav": "Startseite|Aktuelles|Orte|Menschen|Archiv|Über uns|Kontakt",
        "cookie": "Diese Website verwendet Cookies. Mehr in unserer Datenschutzerklärung. Alle akzeptieren",
        "related": "Das könnte Sie auch interessieren",
        "share": "Seite teilen",
        "footer": "Alle Rechte vorbehalten. Nutzungsbedingungen. Datenschutz. Impressum",
        "by": "Von {person}, {n}. {month} {year}",
        "comments": "3 Kommentare",
        "newsletter": "Newsletter abonnieren",
        "script": "Bitte aktivieren Sie JavaScript, um alle Funktionen zu nutzen.",
    },
)
