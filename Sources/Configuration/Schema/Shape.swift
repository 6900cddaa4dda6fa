import WireText

/// The accepted content of one position of a configuration, as recorded by its reader. `heimdallr-proxy config schema`
/// is made from these alone.
indirect enum Shape {
    /// Content that another specification defines, or that is not described further.
    case anything
    case value(ValueKind)
    case list(Shape, ClosedRange<Int>)
    /// Free names, each with a value.
    case names(ValueKind, Shape)
    case section(Outline)
    /// A mapping with these keys and any others.
    case open(Outline)
    case any([Shape])
    /// Defined once under this name, however often it is used.
    case named(String, Shape)

    static func value<Value>(of parse: (String) throws(Misfit) -> Value) -> Shape { .value(ValueKind(of: parse)) }

    /// A list, or a single value instead of a list of one.
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
