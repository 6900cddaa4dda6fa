/// The function that libFuzzer calls with each input. Every target has its `func check(_ input: [UInt8])`, which traps when
/// a property is broken.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    check(unsafe Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}

/// Stops the run: libFuzzer keeps the input.
func require(_ holds: Bool, _ promise: StaticString, line: UInt = #line) {
    if !holds { fatalError("broken: \(promise)", line: line) }
}

/// Where an input is cut: everywhere if it is short, else at a few places that repeat with it. The last is its end.
func cuts(_ input: [UInt8]) -> [Int] {
    if input.count <= 64 { return Array(0...input.count) }
    return (1...3).map { cut(input, $0) }.sorted() + [input.count]
}

private func cut(_ input: [UInt8], _ salt: UInt64) -> Int {
    var hash = salt &* 0x9E37_79B9_7F4A_7C15
    for byte in input { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return Int((hash >> 17) % UInt64(input.count + 1))
}
