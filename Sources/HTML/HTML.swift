/// A piece of a page, made of literals and interpolated values. Interpolated values are always text:
///
///     let row: HTML = "<td class=\"\(tone)\">\(name)</td>"
///
/// The compiler accepts no `String` as a piece of a page, only literals, so markup never comes from outside. A piece is
/// inserted into another piece by `\(alreadyHTML: row)`.
///
/// Values are escaped for text and for quoted attributes. In an attribute that holds an address (`href`, `action` and
/// similar), the whole value is checked: an address becomes `#` if it has a scheme other than http and https, or if it
/// names another host without a scheme (`//host`). A value becomes U+FFFD where no value is safe: in a name, an
/// attribute without quotation marks, a comment, a script, a style or an event handler. A piece that ends within a tag
/// becomes U+FFFD as a whole.
public struct HTML: Sendable, Equatable, ExpressibleByStringInterpolation {
    /// Text of the page, to be sent as UTF-8.
    public let text: String

    public init(stringLiteral literal: StaticString) {
        var parts = StringInterpolation(literalCapacity: 0, interpolationCount: 0)
        parts.appendLiteral(literal)
        self.init(stringInterpolation: parts)
    }

    public init(stringInterpolation parts: StringInterpolation) {
        text = parts.context.isText ? parts.output : HTMLText.replacement
    }

    fileprivate init(joining pieces: [HTML], separator: HTML) {
        text = pieces.map(\.text).joined(separator: separator.text)
    }

    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var output = ""
        fileprivate var context = HTMLContext()
        /// Unfinished value of an address attribute: its text so far, and its offset in `output` in bytes.
        private var address: (text: String, start: Int)?

        public init(literalCapacity: Int, interpolationCount: Int) {
            output.reserveCapacity(literalCapacity + interpolationCount * 16)
        }

        /// Appends a literal of the program. Only literals have this type.
        public mutating func appendLiteral(_ literal: StaticString) {
            let literal = literal.description
            var written = literal.startIndex
            for index in literal.unicodeScalars.indices {
                let scalar = literal.unicodeScalars[index]
                let wasAddress = context.isAddress
                context.pass(scalar)
                switch (wasAddress, context.isAddress) {
                case (false, false): break
                case (false, true):
                    let next = literal.unicodeScalars.index(after: index)
                    output += literal[written..<next]
                    written = next
                    address = ("", output.utf8.count)
                case (true, true): address?.text.unicodeScalars.append(scalar)
                case (true, false):
                    output += literal[written..<index]
                    written = index
                    endAddress()
                }
            }
            output += literal[written...]
        }

        /// Appends any text, escaped.
        public mutating func appendInterpolation(_ text: some StringProtocol) {
            guard context.takesText else { return output += HTMLText.replacement }
            address?.text += text
            output += HTMLText.escaped(text)
        }

        /// Appends a number.
        public mutating func appendInterpolation(_ number: some BinaryInteger) { appendInterpolation(String(number)) }

        /// Appends a finished piece between tags, or U+FFFD in a tag or a value; appends nothing for `nil`.
        public mutating func appendInterpolation(alreadyHTML piece: HTML?) {
            guard let piece else { return }
            output += context.isText ? piece.text : HTMLText.replacement
        }

        /// Appends finished pieces between tags, or U+FFFD in a tag or a value.
        public mutating func appendInterpolation(alreadyHTML pieces: [HTML]) {
            appendInterpolation(alreadyHTML: HTML(joining: pieces, separator: ""))
        }

        /// Appends ` name="value"` after a tag's name or another attribute; appends nothing for `nil`.
        public mutating func appendInterpolation(attribute name: StaticString, _ value: String?) {
            guard let value else { return }
            appendLiteral(" ")
            appendLiteral(name)
            appendLiteral("=\"")
            appendInterpolation(value)
            appendLiteral("\"")
        }

        /// Appends an attribute without a value after a tag's name or another attribute, if `isSet` is `true`.
        public mutating func appendInterpolation(attribute name: StaticString, isSet: Bool) {
            guard isSet else { return }
            appendLiteral(" ")
            appendLiteral(name)
        }

        private mutating func endAddress() {
            guard let address, !HTMLAddress.isHarmless(address.text) else { return self.address = nil }
            output.unicodeScalars.removeSubrange(output.utf8.index(output.startIndex, offsetBy: address.start)...)
            output += "#"
            self.address = nil
        }
    }
}

extension Sequence where Element == HTML {
    public func joined(separator: HTML = "") -> HTML { HTML(joining: Array(self), separator: separator) }
}
