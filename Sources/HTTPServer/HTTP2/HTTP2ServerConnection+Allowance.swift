import HTTP2
import Reactor

// The allowance of a connection over all its streams.
extension HTTP2ServerConnection {
    /// Number of bytes of an answer that its stream may take now. None while the socket is full, because then no stream
    /// can send.
    func room(for stream: HTTP2ProgramStream) -> Int {
        guard unsentOutput + session.load.unsentHeads < ServerConnection.highWater else { return 0 }
        return allowance.room(own: session.unsent(of: stream.id), unsent: session.load.unsentBytes)
    }

    /// Calls `roomCame` once there is room for the stream's answer.
    func awaitRoom(for stream: HTTP2ProgramStream) {
        if !awaitingRoom.contains(where: { $0 === stream }) { awaitingRoom.append(stream) }
    }

    /// Tells the streams for which there is room, the longest wait first.
    func giveRoom() {
        guard !awaitingRoom.isEmpty else { return }
        var streams: [HTTP2ProgramStream] = []
        swap(&streams, &awaitingRoom)
        for stream in streams {
            if room(for: stream) >= HTTP2Allowance.least / 2 { stream.roomCame() } else { awaitingRoom.append(stream) }
        }
    }

    /// Whether a request with a head of this size may begin.
    func admits(_ block: HTTP2Block) -> Bool { allowance.admits(head: block.size, unsent: session.load.unsentBytes) }
}
