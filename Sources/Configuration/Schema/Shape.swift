import WireText

/// What fits one place of a configuration, as its reader asks for it. What `heimdallr-proxy config schema` prints is made
/// of these, and of nothing else.
indirect enum Shape {
    /// What is somebody else's, or is not told more closely.
    case anything
    case value(ValueKind)
    case list(Shape, ClosedRange<Int>)
    /// Free names, each with a value.
    case names(ValueKind, Shape)
    case section(Outline)
    /// A mapping with these keys and any others.
    case open(Outline)
    case any([Shape])
    /// Told once, under this name, however often it is needed.
    case named(String, Shape)

    static func value<Value>(of parse: (String) throws(Misfit) -> Value) -> Shape { .value(ValueKind(of: parse)) }

    /// A list, or a single value in the place of a list of one.
    static func oneOrMore(_ shape: Shape, _ counts: ClosedRange<Int> = 0...Int.max) -> Shape {
        .any([shape, .list(shape, counts)])
    }

    /// What a reader of a mapping asks for.
    static func section(_ read: (Section) -> Void) -> Shape {
        let outline = Outline()
        read(Section(outline))
        return .section(outline)
    }

    func json<Value>(_ value: Value) -> JSON? {
        if case .value(let kind) = self { kind.json(value) } else { nil }
    }
}
