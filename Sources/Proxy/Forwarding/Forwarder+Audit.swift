import Configuration
import HTTPServer
import Reactor

extension Forwarder {
    /// `nil` if the request was neither given a credential nor denied one.
    var auditRecord: AuditRecord? {
        let (admitted, ledger) = (current.admitted, current.ledger)
        guard ledger.gaveCredential || isDenied else { return nil }
        var record = AuditRecord()
        record.time = .now
        record.result = ledger.gaveCredential ? .given : .denied
        record.status = ledger.loggedStatus
        record.reason = ledger.refusal
        if let upstream = admitted.rules {
            record.upstream = upstream.name
            record.rule = upstream.index
            record.client = upstream.settings.client
            if record.client == nil, upstream.settings.injects { record.injection = upstream.settings.injectionText }
        }
        record.user = admitted.caller.user
        record.uid = connection.peer?.user
        record.listener = rules.address(of: connection.listener)
        if connection.peer == nil { record.address = address ?? connection.peerAddress }
        return record
    }

    /// The proxy refused a request for which it has a credential, or refused it before a route was known.
    private var isDenied: Bool {
        guard let error = current.ledger.error, current.ledger.refusal != nil else { return false }
        return !current.admitted.entries.isEmpty || error == "http_request_denied"
    }
}
