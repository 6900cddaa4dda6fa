import HTTPMessage

/// The first line is an authority, the rest a path.
func check(_ input: [UInt8]) {
    let end = input.firstIndex(of: 0x0A) ?? input.count
    if let authority = try? Authority(parsing: Array(input[..<end]).span) {
        let text = authority.description
        let again = try? Authority(parsing: text)
        require(again == authority && again?.description == text, "a canonical authority is a fixed point")
        require(text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "an authority is visible ASCII")
        require(!text.utf8.contains { $0 == 0x40 || $0 == 0x2F || $0 == 0x25 }, "no userinfo, path or escape in it")
        require(!text.utf8.contains { $0 &- 0x41 < 26 }, "it is lower case")
    }
    let path = [0x2F] + input.dropFirst(end + 1)
    guard !PathRules.isAmbiguous(path.span) else { return }
    let plain = Array(path.prefix { $0 != 0x3F })
    require(PathRules.isAmbiguous(plain.span) == false, "the query has no say")
    require(PathRules.matches(prefix: plain, path: path.span), "a path lies below itself")
    require(PathRules.matches(prefix: [0x2F], path: path.span), "everything lies below the root")
    let decoded = unescaped(plain)
    require(!decoded.contains { $0 < 0x20 || $0 == 0x7F || $0 == 0x5C || $0 == 0x3B }, "nothing hides behind escapes")
    var segments = decoded.split(separator: 0x2F, omittingEmptySubsequences: false).dropFirst()
    if segments.last?.isEmpty == true { segments.removeLast() }
    for segment in segments {
        require(!segment.isEmpty, "no empty segment, decoded or not")
        require(!segment.elementsEqual([0x2E]) && !segment.elementsEqual([0x2E, 0x2E]), "no dots, decoded or not")
    }
    require(
        !PathRules.isAmbiguous(plain.span)
            && decoded.count(where: { $0 == 0x2F }) == plain.count(where: { $0 == 0x2F }),
        "no slash comes out of an escape")
}

private func unescaped(_ path: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var index = 0
    while index < path.count {
        if path[index] == 0x25, index + 2 < path.count,
            let value = UInt8(String(decoding: path[index + 1...index + 2], as: UTF8.self), radix: 16)
        {
            result.append(value)
            index += 3
        } else {
            result.append(path[index])
            index += 1
        }
    }
    return result
}
