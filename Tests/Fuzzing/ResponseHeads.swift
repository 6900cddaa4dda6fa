import HTTPMessage

/// The first byte chooses HEAD and HTTP/2; each line after it, with its LF, is one line of the head.
func check(_ input: [UInt8]) {
    guard let options = input.first else { return }
    let wasHead = options & 1 != 0
    let lines = split(input.dropFirst())
    var head = ResponseHead()
    guard read(lines, &head, wasHead, allowHTTP2: options & 2 != 0) else { return }
    require(!head.bytes.contains(0), "no NUL in an accepted head")
    for (index, byte) in head.bytes.enumerated() {
        if byte == 0x0A { require(index > 0 && head.bytes[index - 1] == 0x0D, "no bare LF in an accepted head") }
        if byte == 0x0D {
            require(index + 1 < head.bytes.count && head.bytes[index + 1] == 0x0A, "no bare CR in an accepted head")
        }
    }
    require((100...599).contains(head.status), "a status from 100 to 599")
    if wasHead || head.status < 200 || head.status == 204 || head.status == 304 {
        require(head.framing == .none, "an answer without content has no framing")
    }
    require(!(head.keepAlive && head.framing == .untilClose && !head.isHTTP2), "what ends by closing is not kept")

    let output = serialised(head)
    var again = ResponseHead()
    require(read(split(output[...]), &again, wasHead, allowHTTP2: false), "what is sent on is accepted")
    require(again.status == head.status && again.framing == head.framing, "what is sent on means the same")
    require(values(again) == values(head), "the fields are the same")
}

private func split(_ bytes: ArraySlice<UInt8>) -> [[UInt8]] {
    var lines: [[UInt8]] = []
    var line: [UInt8] = []
    for byte in bytes {
        line.append(byte)
        if byte == 0x0A {
            lines.append(line)
            line = []
        }
    }
    if !line.isEmpty { lines.append(line) }
    return lines
}

/// True when the head is complete.
private func read(_ lines: [[UInt8]], _ head: inout ResponseHead, _ wasHead: Bool, allowHTTP2: Bool) -> Bool {
    head.reset(requestWasHead: wasHead)
    for line in lines {
        do throws(MessageError) {
            if try head.append(line: line.span, allowHTTP2: allowHTTP2) { return true }
        } catch {
            require(error.status == 502, "an upstream's fault is a 502")
            return false
        }
    }
    return false
}

private func values(_ head: ResponseHead) -> [[UInt8]] {
    head.fields.filter { !$0.isHopByHop && $0.known != .contentLength }
        .map { Array(head.bytes[$0.name.range]) + [0x3A] + Array(head.bytes[$0.value.range]) }
}

private func serialised(_ head: ResponseHead) -> [UInt8] {
    var output = Array("HTTP/1.1 \(head.status) ".utf8) + head.bytes[head.reason.range] + [0x0D, 0x0A]
    switch head.framing {
    case .length(let length): output += Array("Content-Length: \(length)\r\n".utf8)
    case .chunked: output += Array("Transfer-Encoding: chunked\r\n".utf8)
    case .none, .untilClose: break
    }
    for field in values(head) { output += field + [0x0D, 0x0A] }
    return output + [0x0D, 0x0A]
}
