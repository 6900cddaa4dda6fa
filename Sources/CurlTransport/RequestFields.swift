import CLibcurl
import Reactor

/// The field lines of one request in one piece of memory, and libcurl's list over them.
@safe struct RequestFields: ~Copyable {
    private var lines = ByteBuffer(capacity: 1024, isSecret: true)
    private var starts: [Int] = []
    private var nodes: UnsafeMutableBufferPointer<curl_slist> = unsafe .init(start: nil, count: 0)

    deinit { unsafe nodes.deallocate() }

    mutating func removeAll() {
        lines.removeAll()
        starts.removeAll(keepingCapacity: true)
    }

    /// The caller has checked name and value: a token, and bytes without CR, LF and NUL.
    mutating func append(name: Span<UInt8>, value: Span<UInt8>) {
        starts.append(lines.count)
        lines.append(name)
        if value.isEmpty {
            // `Name;` sends an empty field. With a colon libcurl would omit it (CURLOPT_HTTPHEADER(3)).
            lines.append(byte: UInt8(ascii: ";"))
        } else {
            lines.append(": ")
            lines.append(value)
        }
        lines.append(byte: 0)
    }

    /// Keeps libcurl from adding this field: `Accept:`.
    mutating func suppress(_ line: StaticString) {
        starts.append(lines.count)
        lines.append(line)
        lines.append(byte: 0)
    }

    /// The list; valid until the next change.
    mutating func list() -> UnsafeMutablePointer<curl_slist>? {
        guard !starts.isEmpty else { return nil }
        if unsafe nodes.count < starts.count {
            unsafe nodes.deallocate()
            unsafe nodes = .allocate(capacity: starts.count * 2)
        }
        let base = unsafe lines.withUnsafeBase { unsafe $0 }
        for index in starts.indices {
            let next = unsafe index + 1 < starts.count ? nodes.baseAddress.unsafelyUnwrapped + index + 1 : nil
            unsafe (nodes.baseAddress.unsafelyUnwrapped + index).initialize(
                to: curl_slist(data: base.advanced(by: starts[index]).assumingMemoryBound(to: CChar.self), next: next))
        }
        return unsafe nodes.baseAddress
    }
}
