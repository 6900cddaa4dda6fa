import HTTPMessage

private struct Decoded: Equatable {
    var data: [UInt8] = []
    var trailers: [[UInt8]] = []
    /// Bytes up to the end of the body; nil where it has none yet.
    var length: Int?
    var error: MessageError?
}

/// Feeds `input` in pieces that end at `ends`.
private func decode(_ input: [UInt8], _ ends: [Int]) -> Decoded {
    var decoder = ChunkedDecoder()
    var result = Decoded()
    var index = 0
    pieces: for end in ends {
        while true {
            do throws(MessageError) {
                switch try decoder.next(input.span.extracting(first: end), from: index) {
                case .needMore(let consumed):
                    require(consumed == end, "all of a piece is read")
                    index = consumed
                    continue pieces
                case .data(let range, let consumed):
                    require(consumed > index && !range.isEmpty && consumed <= end, "data goes forward")
                    result.data += input[range.range]
                    index = consumed
                case .end(let consumed):
                    require(consumed <= end, "the end lies inside")
                    result.length = consumed
                    break pieces
                }
            } catch {
                result.error = error
                break pieces
            }
        }
    }
    for trailer in decoder.trailers {
        require(!trailer.name.isEmpty, "a trailer has a name")
        require(
            !(trailer.name + trailer.value).contains { $0 == 0 || $0 == 13 || $0 == 10 }, "no line ends in trailers")
        result.trailers.append(trailer.name + [0x3A] + trailer.value)
    }
    return result
}

func check(_ input: [UInt8]) {
    let whole = decode(input, [input.count])
    require(decode(input, cuts(input)) == whole, "split feeding answers as whole feeding")
    guard whole.length != nil else { return }

    var coded: [UInt8] = []
    if !whole.data.isEmpty {
        coded += Array((String(whole.data.count, radix: 16) + "\r\n").utf8) + whole.data + [0x0D, 0x0A]
    }
    coded += Array("0\r\n".utf8)
    for trailer in whole.trailers { coded += trailer + [0x0D, 0x0A] }
    coded += [0x0D, 0x0A]
    let again = decode(coded, [coded.count])
    require(again.data == whole.data && again.trailers == whole.trailers, "what is sent on means the same")
    require(again.length == coded.count, "what is sent on ends where it ends")
    for end in cuts(coded) where end < coded.count {
        require(decode(coded, [end]).length == nil, "a cut body is never whole")
    }
}
