import HTTPMessage

/// A request head as far as it matters to whoever receives it next.
private struct Meaning: Equatable {
    var method: [UInt8]
    var target: [UInt8]
    var authority: Authority?
    var framing: BodyFraming
    var fields: [[UInt8]]
}

private let limits = HeadLimits(maxBytes: 4096, maxFields: 24)

private enum Outcome: Equatable {
    case incomplete
    case complete(Int)
    case refused(MessageError)
}

private func feed(
    _ bytes: [UInt8], upTo end: Int, _ head: inout RequestHead, limits: HeadLimits = limits
) -> Outcome {
    do throws(MessageError) {
        switch try head.parse(bytes.span.extracting(first: end), limits: limits) {
        case .incomplete: return .incomplete
        case .complete(let length): return .complete(length)
        }
    } catch {
        return .refused(error)
    }
}

func check(_ input: [UInt8]) {
    var whole = RequestHead()
    let outcome = feed(input, upTo: input.count, &whole)

    var split = RequestHead()
    var last = Outcome.incomplete
    for end in cuts(input) {
        last = feed(input, upTo: end, &split)
        if last != .incomplete { break }
    }
    require(last == outcome, "split feeding answers as whole feeding")

    guard case .complete(let length) = outcome else { return }
    require(split.fields == whole.fields && split.framing == whole.framing, "split feeding reads the same head")
    checkOctets(input, length)
    checkUpgrade(input, whole)
    guard let meaning = read(input, whole) else { return }

    let forwarded = serialised(meaning)
    var again = RequestHead()
    // It has fields of ours, and may have been as large as it could be.
    let roomier = HeadLimits(maxBytes: 2 * limits.maxBytes, maxFields: limits.maxFields + 2)
    require(
        feed(forwarded, upTo: forwarded.count, &again, limits: roomier) == .complete(forwarded.count),
        "what is sent on is accepted")
    guard var second = read(forwarded, again) else {
        return require(false, "what is sent on has a target")
    }
    if meaning.authority == nil { second.authority = nil }
    require(second == meaning, "what is sent on means the same")
}

private func checkOctets(_ input: [UInt8], _ length: Int) {
    for index in 0..<length {
        switch input[index] {
        case 0: require(false, "no NUL in an accepted head")
        case 0x0A: require(index > 0 && input[index - 1] == 0x0D, "no bare LF in an accepted head")
        case 0x0D: require(index + 1 < length && input[index + 1] == 0x0A, "no bare CR in an accepted head")
        default: break
        }
    }
}

/// `nil` for requests that are not forwarded: a malformed target, CONNECT.
private func read(_ bytes: [UInt8], _ head: RequestHead) -> Meaning? {
    guard let target = try? RequestTarget(parsing: bytes.span, head: head) else { return nil }
    var authority = head.host
    var path: [UInt8]
    switch target {
    case .origin(let range): path = Array(bytes[range.range])
    case .absolute(_, let named, let range):
        authority = named
        path = Array(bytes[range.range])
        if path.isEmpty, head.methodKind == .options {
            path = [0x2A]
        } else if path.first != 0x2F {
            path.insert(0x2F, at: 0)
        }
    case .asterisk: path = [0x2A]
    case .authority: return nil
    }
    let parsed = authority.isEmpty ? nil : try? Authority(parsing: bytes.span, authority)
    require(authority.isEmpty || parsed != nil, "an accepted head has a valid authority")
    let fields = head.fields.filter { !$0.isHopByHop && $0.known != .host && $0.known != .contentLength }
        .map { Array(bytes[$0.name.range]) + [0x3A, 0x20] + Array(bytes[$0.value.range]) }
    return Meaning(
        method: Array(bytes[head.method.range]), target: path, authority: parsed, framing: head.framing, fields: fields)
}

private func serialised(_ meaning: Meaning) -> [UInt8] {
    var bytes = meaning.method + [0x20] + meaning.target + Array(" HTTP/1.1\r\nHost: ".utf8)
    bytes += Array((meaning.authority?.description ?? "upstream.example").utf8) + [0x0D, 0x0A]
    switch meaning.framing {
    case .length(let length): bytes += Array("Content-Length: \(length)\r\n".utf8)
    case .chunked: bytes += Array("Transfer-Encoding: chunked\r\n".utf8)
    case .none, .untilClose: break
    }
    for field in meaning.fields { bytes += field + [0x0D, 0x0A] }
    return bytes + [0x0D, 0x0A]
}

/// The upstream gets the client's offer.
private func checkUpgrade(_ input: [UInt8], _ head: RequestHead) {
    guard let offer = UpgradeList(head.fields, in: input.span), !offer.isEmpty else { return }
    let message = Array("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: ".utf8) + offer.value + Array("\r\n\r\n".utf8)
    var again = RequestHead()
    let roomier = HeadLimits(maxBytes: 2 * limits.maxBytes, maxFields: limits.maxFields)
    require(
        feed(message, upTo: message.count, &again, limits: roomier) == .complete(message.count), "an offer is a field")
    require(UpgradeList(again.fields, in: message.span) == offer, "an offer that is sent on is the same")
    require(offer.isCovered(by: offer), "an offer covers itself")
    require(offer.withoutHTTP.withoutHTTP == offer.withoutHTTP, "what is left out is gone")
}
