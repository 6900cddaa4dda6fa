import HTTPMessage

private struct Read: Equatable {
    var statuses: [Int] = []
    var content: [UInt8] = []
    var trailers: [[UInt8]] = []
    /// Bytes up to the answer's end; nil where it has none yet.
    var length: Int?
    var error: MessageError?
    var closing: [HTTP1Exchange.Closing] = []
    var keepsConnection = false
    var wantsUpload = false
}

/// The request that is answered, from the input's first byte.
private func begin(_ exchange: inout HTTP1Exchange, _ options: UInt8) {
    let upload: HTTP1Exchange.Upload =
        switch options >> 2 & 3 {
        case 0: .none
        case 1: .length(UInt64(options >> 4) + 1)
        case 2: .chunked
        default: .none
        }
    exchange.begin(
        requestWasHead: options & 1 != 0, upload: upload, expectsContinue: options & 2 != 0,
        offersUpgrade: options >> 2 & 3 == 3 || options & 0x20 != 0)
    // How much of the body went out before the answer.
    if options & 0x80 != 0 { exchange.sent(Int(options >> 4)) }
}

/// Feeds `input` in pieces that end at `ends`. No consumed byte is fed again.
private func read(_ exchange: inout HTTP1Exchange, _ options: UInt8, _ input: [UInt8], _ ends: [Int]) -> Read {
    begin(&exchange, options)
    var result = Read()
    var start = 0
    pieces: for end in ends {
        let piece = Array(input[start..<end])
        var index = 0
        while true {
            do throws(MessageError) {
                switch try exchange.next(piece.span, from: index) {
                case .needMore(let consumed):
                    require(consumed >= index && consumed <= piece.count, "reading goes forward")
                    start += consumed
                    continue pieces
                case .head(let consumed):
                    require(consumed > index && consumed <= piece.count, "a head has bytes")
                    result.statuses.append(exchange.head.status)
                    require(result.statuses.count <= HTTP1Exchange.maxInterim + 1, "interim answers are bounded")
                    index = consumed
                case .content(let range, let consumed):
                    require(Int(range.start) >= index && Int(range.end) == consumed, "content goes forward")
                    result.content += piece[range.range]
                    index = consumed
                case .end(let consumed):
                    result.length = start + consumed
                    break pieces
                }
            } catch {
                require(error.status == 502, "the upstream is at fault")
                // Bytes that can't become a status line are refused before its end, where another fault may follow.
                result.error = MessageError(status: error.status, detail: "")
                break pieces
            }
        }
    }
    result.trailers = exchange.trailers.map { $0.name + [0x3A] + $0.value }
    result.closing = [exchange.closed(isClean: true), exchange.closed(isClean: false)]
    result.keepsConnection = exchange.keepsConnection
    result.wantsUpload = exchange.wantsUpload
    return result
}

/// The first byte selects the request, the second the answer before it on the connection.
func check(_ input: [UInt8]) {
    guard input.count > 2 else { return }
    let answer = Array(input[2...])
    var fresh = HTTP1Exchange()
    let whole = read(&fresh, input[0], answer, [answer.count])
    var cutUp = HTTP1Exchange()
    let split = read(&cutUp, input[0], answer, cuts(answer))
    if whole.error == nil || split.error == nil || whole.statuses == split.statuses {
        require(split == whole, "split feeding answers as whole feeding")
    }
    // One object serves one exchange after the other.
    var used = HTTP1Exchange()
    _ = read(&used, input[1], answer, [answer.count / 2])
    require(read(&used, input[0], answer, [answer.count]) == whole, "nothing is left of the exchange before")
    if whole.length != nil {
        require(whole.closing == [.whole, .whole], "what is whole can't be cut")
    } else {
        require(!whole.keepsConnection, "a connection serves again after a whole answer only")
    }
    if whole.statuses.isEmpty { require(whole.closing[0] != .whole, "no head, no answer") }
}
