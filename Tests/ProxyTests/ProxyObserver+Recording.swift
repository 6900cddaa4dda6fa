import Proxy
import TestSupport

extension ProxyObserver {
    /// One that records the access log.
    static func recording(_ log: Recorder<RequestRecord>) -> ProxyObserver {
        var observer = ProxyObserver()
        observer.accessLog = { log.append($0) }
        return observer
    }
}
