import Mustache

/// The page's templates, ready to be filled. Every value goes through `PageText`, whatever template it is for.
enum PageMarkup {
    enum Template: String, CaseIterable {
        case page, live, message, device, gate, confirm, fragment
    }

    /// `{{…}}` stands for what is in `values`: text, booleans, and arrays and dictionaries of them.
    static func render(_ template: Template, _ values: [String: Any]) -> String {
        library.render(values, withTemplate: template.rawValue) ?? ""
    }

    private static let library: MustacheLibrary = {
        MustacheContentTypes.register(PageText(), named: PageText.name)
        var library = MustacheLibrary()
        for (name, text) in PageTemplates.all {
            // A partial forgets its caller's content type, so each says it for itself.
            if let template = try? MustacheTemplate(string: "{{% CONTENT_TYPE: \(PageText.name)}}" + text) {
                library.register(template, named: name)
            }
        }
        return library
    }()

    /// Names of templates that can't be read: none.
    static var missing: [String] {
        PageTemplates.all.keys.filter { library.getTemplate(named: $0) == nil }.sorted()
    }
}

/// Makes any text safe as HTML text and in a quoted attribute. Mustache's own way goes by grapheme cluster, and leaves a
/// quotation mark alone that has a combining character behind it.
struct PageText: MustacheContentType {
    static let name = "PAGE"

    func escapeText(_ text: String) -> String { Self.escaped(text) }

    static func escaped(_ text: String) -> String {
        var result = ""
        result.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&#39;"
            case "`": result += "&#96;"
            case "\n": result.unicodeScalars.append(scalar)
            default: result.unicodeScalars.append(isHidden(scalar) ? "\u{FFFD}" : scalar)
            }
        }
        return result
    }

    /// What does not show, or changes how its surroundings show.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned: true
        default: false
        }
    }
}
