import Glibc

/// A queue of bytes in one piece of memory: appended at the end, consumed from the front.
@safe public struct ByteBuffer: ~Copyable {
    private var storage: UnsafeMutableRawBufferPointer
    private var start = 0
    private var end = 0
    /// End of the bytes to wipe: the secrets and all bytes before them, also consumed ones. `Int.max` covers all bytes.
    private var secretEnd = 0
    /// Smallest allocation: a head that is appended piece by piece must not move at each piece.
    private static let leastCapacity = 512

    public init(capacity: Int = 0, isSecret: Bool = false) {
        unsafe storage = capacity == 0 ? .init(start: nil, count: 0) : Self.allocate(capacity)
        self.isSecret = isSecret
    }

    deinit {
        if secretEnd > 0 { wipe(from: 0) }
        unsafe free(storage.baseAddress)
    }

    /// Allocates memory, to be released by `free`. `UnsafeMutableRawBufferPointer.allocate` would call
    /// posix_memalign(3), which takes several times longer.
    static func allocate(_ count: Int) -> UnsafeMutableRawBufferPointer {
        guard let memory = unsafe malloc(count) else { fatalError("no memory") }
        return unsafe UnsafeMutableRawBufferPointer(start: memory, count: count)
    }

    /// Whether appended bytes are secret. The memory of secret bytes is wiped when the buffer is emptied, moved or
    /// released.
    public var isSecret: Bool {
        get { secretEnd == .max }
        set {
            if newValue { secretEnd = .max } else if isSecret { secretEnd = end }
        }
    }

    /// Wipes the bytes from `index` to `secretEnd`.
    @inline(never) private func wipe(from index: Int) {
        let dirty = min(secretEnd, end)
        guard index < dirty else { return }
        unsafe explicit_bzero(storage.baseAddress.unsafelyUnwrapped + index, dirty - index)
    }

    /// Adjusts `secretEnd` after the bytes were wiped, or moved by `distance` towards the front.
    private mutating func moveSecret(by distance: Int) {
        if !isSecret { secretEnd = max(0, secretEnd - distance) }
    }

    public var count: Int { end - start }
    public var isEmpty: Bool { start == end }
    public var capacity: Int { unsafe storage.count }

    /// The bytes not consumed yet.
    public var bytes: Span<UInt8> {
        @_lifetime(borrow self)
        get {
            let base = unsafe storage.baseAddress?.assumingMemoryBound(to: UInt8.self)
            let span = unsafe Span<UInt8>(
                _unsafeStart: base.map { unsafe UnsafePointer($0 + start) } ?? emptyBase, count: end - start)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// Lends the bytes to `body`. For buffers in a class, which can't lend `bytes`.
    public borrowing func withBytes<Result, Failure: Error>(
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(bytes)
    }

    /// Copies the bytes at `range` to `target`, from `position` on. `target` must have room for them.
    public func copy(_ range: Range<Int>, to target: inout MutableSpan<UInt8>, at position: Int) {
        precondition(range.lowerBound >= 0 && range.upperBound <= count)
        precondition(position >= 0 && position + range.count <= target.count)
        guard !range.isEmpty else { return }
        unsafe target.withUnsafeMutableBytes { target in
            let source = unsafe storage.baseAddress.unsafelyUnwrapped + start + range.lowerBound
            unsafe (target.baseAddress.unsafelyUnwrapped + position).copyMemory(from: source, byteCount: range.count)
        }
    }

    public mutating func append(_ bytes: Span<UInt8>) {
        guard !bytes.isEmpty else { return }
        reserve(bytes.count)
        unsafe bytes.withUnsafeBytes { source in
            unsafe storage.baseAddress.unsafelyUnwrapped.advanced(by: end)
                .copyMemory(from: source.baseAddress.unsafelyUnwrapped, byteCount: source.count)
        }
        end += bytes.count
    }

    /// Copies at most `count` bytes from the front of another buffer.
    public mutating func append(first count: Int, of other: borrowing ByteBuffer) {
        append(other.bytes.extracting(first: count))
    }

    public mutating func append(_ text: StaticString) { text.withUTF8Buffer { utf8 in append(unsafe utf8.span) } }

    public mutating func append(_ bytes: [UInt8]) { append(bytes.span) }

    public mutating func append(byte: UInt8) {
        reserve(1)
        unsafe storage.baseAddress.unsafelyUnwrapped.storeBytes(of: byte, toByteOffset: end, as: UInt8.self)
        end += 1
    }

    public mutating func append(decimal value: UInt64) { append(digitsOf: value, base: 10) }

    public mutating func append(hexadecimal value: UInt64) { append(digitsOf: value, base: 16) }

    private mutating func append(digitsOf value: UInt64, base: UInt64) {
        var digits: InlineArray<20, UInt8> = .init(repeating: 0)
        var index = 20
        var rest = value
        repeat {
            index -= 1
            let digit = UInt8(truncatingIfNeeded: rest % base)
            digits[index] = digit < 10 ? 48 + digit : 87 + digit
            rest /= base
        } while rest > 0
        append(digits.span.extracting(index..<20))
    }

    public mutating func consume(_ count: Int) {
        precondition(count >= 0 && count <= end - start)
        start += count
        if start == end { removeAll() }
    }

    public mutating func removeAll() {
        if secretEnd > 0 {
            wipe(from: 0)
            moveSecret(by: end)
        }
        start = 0
        end = 0
    }

    public mutating func release() {
        removeAll()
        unsafe free(storage.baseAddress)
        unsafe storage = .init(start: nil, count: 0)
    }

    /// Takes ownership of `memory`. The buffer must have no memory.
    mutating func adopt(_ memory: UnsafeMutableRawBufferPointer) { unsafe storage = memory }

    /// Returns the memory, which then belongs to the caller. The buffer must be empty, and wiped if it held secrets.
    mutating func surrender() -> UnsafeMutableRawBufferPointer {
        defer { unsafe storage = .init(start: nil, count: 0) }
        return unsafe storage
    }

    /// Makes room for `count` more bytes after the last byte.
    public mutating func reserve(_ count: Int) {
        if unsafe storage.count - end < count { makeRoom(count) }
    }

    @inline(never) private mutating func makeRoom(_ count: Int) {
        let used = end - start
        if start > 0, unsafe storage.count - used >= count, unsafe used <= storage.count / 2 {
            if used > 0 {
                unsafe memmove(
                    storage.baseAddress.unsafelyUnwrapped, storage.baseAddress.unsafelyUnwrapped + start, used)
            }
            if secretEnd > 0 { wipe(from: used) }
        } else {
            let bigger = unsafe Self.allocate(max(used + count, storage.count * 2, Self.leastCapacity))
            if used > 0 {
                unsafe memcpy(
                    bigger.baseAddress.unsafelyUnwrapped, storage.baseAddress.unsafelyUnwrapped + start, used)
            }
            if secretEnd > 0 { wipe(from: 0) }
            unsafe free(storage.baseAddress)
            unsafe storage = bigger
        }
        moveSecret(by: start)
        start = 0
        end = used
    }

    /// Lets `fill` write at most `limit` bytes after the last byte. `fill` returns the number written.
    public mutating func append(upTo limit: Int, fill: (inout MutableSpan<UInt8>) -> Int) {
        reserve(limit)
        let spare = unsafe UnsafeMutableRawBufferPointer(rebasing: storage[end..<(end + limit)])
        var bytes = unsafe spare.bindMemory(to: UInt8.self).mutableSpan
        let written = fill(&bytes)
        precondition(written >= 0 && written <= limit)
        end += written
    }

    /// Lends the address of the first byte, for C. The address is valid until the next change. Not for an empty buffer.
    @unsafe public mutating func withUnsafeBase<Result>(_ body: (UnsafeMutableRawPointer) -> Result) -> Result {
        unsafe body(storage.baseAddress.unsafelyUnwrapped + start)
    }

    /// Lets `fill` write behind the last byte. `fill` returns the number of bytes written, or a negative number for
    /// none.
    @unsafe public mutating func withSpareCapacity(_ count: Int, fill: (UnsafeMutableRawBufferPointer) -> Int) -> Int {
        reserve(count)
        let spare = unsafe UnsafeMutableRawBufferPointer(rebasing: storage[end...])
        let written = unsafe fill(spare)
        precondition(written <= spare.count)
        end += max(0, written)
        return written
    }
}

/// Address of empty spans: never read, but not null.
private nonisolated(unsafe) let emptyBase = unsafe UnsafePointer<UInt8>(
    UnsafeMutablePointer<UInt8>.allocate(capacity: 1))
