/// A character that is invisible, or looks like another character. A YAML parser treats it as part of a value.
struct LookAlike {
    let scalar: Unicode.Scalar
    let name: String
    let advice: String

    init?(_ scalar: Unicode.Scalar) {
        self.scalar = scalar
        let (word, advice): (String, String)
        switch scalar.value {
        case 0xA0, 0x2007, 0x202F: (word, advice) = ("a no-break space", "write a plain space")
        case 0x1680, 0x2000...0x200A, 0x205F, 0x3000:
            (word, advice) = ("a space of another width", "write a plain space")
        case 0x200B...0x200D, 0x2060, 0xFEFF: (word, advice) = ("a zero-width character", "remove it")
        case 0xAD: (word, advice) = ("a soft hyphen", "remove it")
        case 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069:
            (word, advice) = ("a mark of the writing direction", "remove it")
        case 0x201C...0x201F, 0xAB, 0xBB, 0x2018...0x201B, 0x2039, 0x203A:
            (word, advice) = ("a typographic quotation mark", "write \" or '")
        case 0x2010...0x2015, 0x2212: (word, advice) = ("a typographic dash", "write -")
        default: return nil
        }
        let number = String(scalar.value, radix: 16, uppercase: true)
        name = "\(word) (U+\(String(repeating: "0", count: max(0, 4 - number.count)))\(number))"
        self.advice = advice
    }

    private var isInvisible: Bool { !advice.hasPrefix("write \"") && !advice.hasPrefix("write -") }

    /// Finds the first look-alike in a value without quotes. Quotation marks and dashes count only at the start.
    init?(inPlain text: String) {
        for (index, scalar) in text.unicodeScalars.enumerated() {
            guard scalar.value >= 0x80, let found = LookAlike(scalar), found.isInvisible || index == 0 else { continue }
            self = found
            return
        }
        return nil
    }

    init?(in text: String) {
        guard let found = text.unicodeScalars.lazy.compactMap({ LookAlike($0) }).first else { return nil }
        self = found
    }

    func fault(at location: YAMLText.Location) -> YAMLEvents.Fault {
        .init(
            position: location.position,
            message: "there is \(name) here: \(advice), or put the value in quotes if it is intended")
    }
}
