/// A queue of spans to send, first in, first out. It is bounded in number and in bytes, and refuses spans when it is full.
struct WaitingSpans<Element: Sendable>: Sendable {
    let mostElements: Int
    let mostBytes: Int

    private var elements: [(element: Element, bytes: Int)] = []
    private var first = 0
    private(set) var bytes = 0

    init(mostElements: Int, mostBytes: Int) {
        self.mostElements = mostElements
        self.mostBytes = mostBytes
    }

    var count: Int { elements.count - first }
    var isEmpty: Bool { count == 0 }

    /// - Parameter size: its memory in bytes.
    /// - Returns: whether it was accepted.
    mutating func add(_ element: Element, size: Int) -> Bool {
        guard count < mostElements, bytes + size <= mostBytes else { return false }
        elements.append((element, size))
        bytes += size
        return true
    }

    /// Removes the oldest elements.
    mutating func take(atMost most: Int) -> [Element] {
        let end = min(elements.count, first + most)
        let taken = elements[first..<end]
        for (_, size) in taken { bytes -= size }
        first = end
        defer {
            // Frees the memory of removed elements.
            if first == elements.count {
                elements = []
                first = 0
            } else if first >= elements.count / 2 {
                elements.removeFirst(first)
                first = 0
            }
        }
        return taken.map(\.element)
    }
}
