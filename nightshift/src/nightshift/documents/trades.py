"""What each kind of vendor is called, sells and charges: the word lists of drawn receipts."""

from dataclasses import dataclass

from nightshift.documents.receipt import DateStyle, Layout


@dataclass(frozen=True, kw_only=True)
class Trade:
    """What one layout sells: vendor patterns, goods (label, lowest, highest cents, VAT), how many lines."""

    vendors: tuple[str, ...]
    goods: tuple[tuple[str, int, int, int], ...]
    lines: tuple[int, int]
    quantities: tuple[int, ...]
    date_styles: tuple[DateStyle, ...]
    cash_ratio: float
    step: int = 1  # prices are multiples of this many cents above the lowest


TRADES = {
    Layout.SUPERMARKET: Trade(
        vendors=(
            "Bäckerei {}", "Frischemarkt {}", "Getränke {}", "Kaufmarkt {}", "Drogerie {}",
            "Metzgerei {}",
        ),
        goods=(
            ("Brötchen Körner", 45, 120, 7), ("Milch 3,5% 1L", 99, 169, 7),
            ("Käse Gouda jung", 189, 449, 7), ("Äpfel Elstar kg", 199, 349, 7),
            ("Kaffee gemahlen", 499, 899, 7), ("Mineralwasser 6er", 299, 549, 19),
            ("Müsli Früchte", 249, 459, 7), ("Spülmittel", 95, 249, 19),
            ("Küchenrollen", 199, 399, 19), ("Süßstoff", 149, 299, 7),
            ("Gemüsebrühe", 119, 279, 7), ("Papiertücher", 145, 295, 19),
            ("Orangensaft", 129, 289, 19), ("Butter 250g", 169, 299, 7),
            ("Pfand", 25, 25, 19),
        ),
        lines=(3, 11), quantities=(1, 1, 1, 1, 2, 3), cash_ratio=0.6,
        date_styles=(DateStyle.FULL, DateStyle.SHORT),
    ),
    Layout.RESTAURANT: Trade(
        vendors=(
            "Gasthaus {}", "Café {}", "Wirtshaus zum Löwen", "Brauhaus {}", "Trattoria Bella Vista",
            "Landgasthof {}", "Ratskeller am Dom", "Restaurant Alte Mühle",
        ),
        goods=(
            ("Jägerschnitzel", 1390, 1990, 19), ("Käsespätzle", 1090, 1490, 19),
            ("Weißbier 0,5", 420, 580, 19), ("Apfelschorle", 320, 480, 19),
            ("Tagessuppe", 490, 690, 19), ("Gemischter Salat", 450, 890, 19),
            ("Espresso", 240, 320, 19), ("Apfelstrudel", 550, 790, 19),
            ("Rösti mit Lachs", 1490, 1890, 19), ("Mineralwasser", 290, 690, 19),
        ),
        lines=(2, 7), quantities=(1, 1, 2, 2, 3, 4), cash_ratio=0.5, step=10,
        date_styles=(DateStyle.FULL, DateStyle.SHORT, DateStyle.LONG),
    ),
    Layout.FUEL: Trade(
        vendors=(
            "Tankstelle {}", "Autohof {}", "Tank-Center {}", "Station {} & Sohn",
        ),
        goods=(
            ("Super E10", 3500, 9900, 19), ("Diesel", 4200, 13900, 19),
            ("Super Plus", 3900, 11900, 19), ("Scheibenklar", 490, 990, 19),
            ("Autowäsche", 790, 1490, 19), ("Kaffee Creme", 220, 390, 19),
        ),
        lines=(1, 3), quantities=(1,), cash_ratio=0.2,
        date_styles=(DateStyle.FULL, DateStyle.SHORT, DateStyle.ISO),
    ),
    Layout.LETTER: Trade(
        vendors=(
            "Malerbetrieb {} GmbH", "Elektro {} e.K.", "Schreinerei {} & Söhne", "Bürotechnik {} GmbH",
            "Gebäudereinigung {}", "{} Sanitär GmbH", "Druckerei {} KG", "Steuerkanzlei {}",
        ),
        goods=(
            ("Arbeitszeit Facharbeiter", 5500, 7900, 19), ("Anfahrt", 2500, 4900, 19),
            ("Wandfarbe weiß 10 l", 3900, 8900, 19), ("Prüfung elektrischer Geräte", 1290, 2490, 19),
            ("Reinigung Büroflächen", 18000, 42000, 19), ("Tonerkartusche schwarz", 6900, 12900, 19),
            ("Beratung", 9000, 18000, 19), ("Kleinmaterial", 890, 3900, 19),
            ("Briefbögen, 500 Stück", 7900, 14900, 19),
        ),
        lines=(2, 6), quantities=(1, 1, 2, 3, 4, 8), cash_ratio=0.0,
        date_styles=(DateStyle.FULL, DateStyle.LONG, DateStyle.LONG),
    ),
    Layout.SHOP: Trade(
        vendors=(
            "Bürowelt {} GmbH", "Schrauben-Express GmbH", "Papierhaus {}", "Werkzeugkiste Süd GmbH",
            "{} Versandhandel", "Möbelhaus {} GmbH",
        ),
        goods=(
            ("Ordner A4 breit, blau", 249, 459, 19), ("Kopierpapier 500 Blatt", 449, 749, 19),
            ("Bürostuhl Höhe 110", 8990, 24900, 19), ("USB-C Kabel 2 m", 690, 1990, 19),
            ("Fachbuch Buchführung", 1990, 4990, 7), ("Schreibtischlampe", 2490, 6990, 19),
            ("Akkuschrauber Set", 5990, 15990, 19), ("Dübel 8 mm, 100 Stück", 490, 990, 19),
            ("Versandkosten", 390, 690, 19),
        ),
        lines=(2, 6), quantities=(1, 1, 2, 5, 10), cash_ratio=0.0,
        date_styles=(DateStyle.FULL, DateStyle.ISO, DateStyle.LONG),
    ),
    Layout.PARKING: Trade(
        vendors=(
            "Parkhaus am Markt", "Tiefgarage {}", "City-Parken {} GmbH", "Parkhaus Südtor",
            "Parkhaus {}platz",
        ),
        goods=(("Parkentgelt", 150, 2800, 19),),
        lines=(1, 1), quantities=(1,), cash_ratio=0.5, step=50,
        date_styles=(DateStyle.FULL, DateStyle.SHORT, DateStyle.ISO),
    ),
}  # fmt: skip
