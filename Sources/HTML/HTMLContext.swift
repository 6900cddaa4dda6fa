/// The HTML context of a point in a page, as far as escaping needs it. Only the scalars of literals determine the
/// context, never interpolated values.
struct HTMLContext {
    private enum State: Equatable {
        case text
        /// After `<` or `</`, in the name of a tag.
        case name(isEnd: Bool)
        /// After `<!`, in a comment or the document's type.
        case declaration
        /// In a tag, between attributes or in an attribute's name.
        case tag
        /// After the equals sign of an attribute.
        case equals
        case quoted(by: Unicode.Scalar)
        /// In a value without quotation marks.
        case bare
        /// In an element whose content is not text: a script or a style.
        case raw
    }

    private static let rawElements: Set = ["script", "style"]
    private static let addresses: Set = [
        "href", "src", "action", "formaction", "cite", "data", "poster", "ping", "srcset", "manifest", "background",
        "xlink:href",
    ]

    private var state = State.text
    private var element = ""
    private var attribute = ""
    /// Whether an attribute's name has ended: the next character begins another name, unless it is an equals sign.
    private var isNameOver = false
    private var last: Unicode.Scalar = " "

    /// Whether the point is between tags.
    var isText: Bool { state == .text }

    /// Whether the point is in the value of an address attribute.
    var isAddress: Bool { isQuoted && Self.addresses.contains(attribute) }

    /// Whether escaped text is safe here.
    var takesText: Bool {
        isText || isQuoted && !attribute.hasPrefix("on") && attribute != "style" && attribute != "srcdoc"
    }

    private var isQuoted: Bool { if case .quoted = state { true } else { false } }

    /// Moves the point past one scalar.
    mutating func pass(_ scalar: Unicode.Scalar) {
        defer { last = scalar }
        switch state {
        case .text:
            if scalar == "<" { beginTag() }
        case .raw:
            // Only an end tag ends a script or a style.
            if last == "<", scalar == "/" {
                state = .name(isEnd: true)
                element = ""
            }
        case .name(let isEnd):
            switch scalar {
            case "!" where last == "<": state = .declaration
            case "/" where last == "<": state = .name(isEnd: true)
            case ">": endTag(isEnd: isEnd)
            case " ", "\n", "/":
                state = .tag
                attribute = ""
                if isEnd { element = "" }
            default: element.unicodeScalars.append(contentsOf: scalar.properties.lowercaseMapping.unicodeScalars)
            }
        case .declaration:
            if scalar == ">" { state = .text }
        case .tag: passInTag(scalar)
        case .equals:
            switch scalar {
            case "\"", "'": state = .quoted(by: scalar)
            case ">": endTag(isEnd: false)
            case " ", "\n": break
            default: state = .bare
            }
        case .quoted(let mark):
            if scalar == mark { endValue() }
        case .bare:
            switch scalar {
            case ">": endTag(isEnd: false)
            case " ", "\n": endValue()
            default: break
            }
        }
    }

    private mutating func passInTag(_ scalar: Unicode.Scalar) {
        switch scalar {
        case ">": endTag(isEnd: false)
        case "=": state = .equals
        case " ", "\n", "/": isNameOver = true
        default:
            if isNameOver { attribute = "" }
            isNameOver = false
            attribute.unicodeScalars.append(contentsOf: scalar.properties.lowercaseMapping.unicodeScalars)
        }
    }

    private mutating func endValue() {
        state = .tag
        attribute = ""
    }

    private mutating func beginTag() {
        state = .name(isEnd: false)
        element = ""
        attribute = ""
    }

    private mutating func endTag(isEnd: Bool) { state = !isEnd && Self.rawElements.contains(element) ? .raw : .text }
}
