/// A queue of spans to send, first in, first out. Bounded in number and in bytes: a full queue refuses spans.
struct WaitingSpans<Element: Sendable>: Sendable {
    let mostElements: Int
    let mostBytes: Int

    private(set) var elements: [(element: Element, bytes: Int)] = []
    private(set) var bytes = 0

    var count: Int { elements.count }
    var isEmpty: Bool { count == 0 }

    /// - Parameter size: memory of the element in bytes.
    /// - Returns: whether the queue accepted the element.
    mutating func add(_ element: Element, size: Int) -> Bool {
        guard count < mostElements, bytes + size <= mostBytes else { return false }
        elements.append((element, size))
        bytes += size
        return true
    }

    /// Removes the oldest elements.
    mutating func take(atMost most: Int) -> [Element] {
        let taken = elements.prefix(most)
        bytes -= taken.reduce(0) { $0 + $1.bytes }
        // A new array frees the memory of the removed elements.
        elements = Array(elements.dropFirst(most))
        return taken.map(\.element)
    }
}
