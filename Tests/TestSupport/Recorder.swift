import Synchronization

/// Collects events from any thread, in order.
public final class Recorder<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])

    public init() {}

    public var all: [Element] { elements.withLock { $0 } }
    public func append(_ element: Element) { elements.withLock { $0.append(element) } }
}
