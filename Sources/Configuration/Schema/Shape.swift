import WireText

/// The accepted content at a position of the configuration, recorded by its reader. `heimdallr-proxy config schema`
/// is made from these shapes.
indirect enum Shape {
    /// Content that another specification defines, or that has no description.
    case anything
    case value(ValueKind)
    case list(Shape, ClosedRange<Int>)
    /// A mapping with free names and values of the same shape.
    case names(ValueKind, Shape)
    case section(Outline)
    /// A mapping with these keys and any others.
    case open(Outline)
    case any([Shape])
    /// A shape that is defined once under this name, and referenced at each use.
    case named(String, Shape)
    /// A shape of this name, within itself.
    case reference(String)

    static func value<Value>(of parse: (String) throws(BadValue) -> Value) -> Shape { .value(ValueKind(of: parse)) }

    /// A list, or a single value in place of a list with one element.
    static func oneOrMore(_ shape: Shape, _ counts: ClosedRange<Int> = 0...Int.max) -> Shape {
        .any([shape, .list(shape, counts)])
    }

    /// Records the keys that the reader of a mapping asks for.
    static func section(_ read: (Section) -> Void) -> Shape {
        let outline = Outline()
        read(Section(outline))
        return .section(outline)
    }

    func json<Value>(_ value: Value) -> JSON? { if case .value(let kind) = self { kind.json(value) } else { nil } }
}
