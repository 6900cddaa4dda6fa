import Hummingbird
import NIOCore

/// What a request brings beside itself.
struct AdminContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// Where it came in.
    let localAddress: SocketAddress?
    /// The address that it came from, for the log and the limits.
    let caller: String
    /// Another site's page, or a link somewhere else, led here: what changes anything asks first.
    var isForeign = false

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        localAddress = source.channel.localAddress
        caller = source.channel.remoteAddress?.plainAddress ?? "a local socket"
    }
}
