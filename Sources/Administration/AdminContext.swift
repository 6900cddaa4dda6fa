import Hummingbird
import NIOCore

/// What a request brings beside itself.
struct AdminContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// Where it came in.
    let localAddress: SocketAddress?

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        localAddress = source.channel.localAddress
    }
}
