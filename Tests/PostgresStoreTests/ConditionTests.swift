import Foundation
import Heimdallr
import TestSupport
import Testing

@testable import PostgresStore

@Suite struct `Conditions of the database, in words` {
    private static let folder = "/run/postgresql"

    @Test("the SQLSTATE decides the condition, in whatever language the server speaks")
    func languages() {
        let german = PostgresFault(
            connecting: """
                connection to server at "127.0.0.1", port 5432 failed: FATAL:  28P01: Passwort-Authentifizierung für Benutzer »x« fehlgeschlagen
                LOCATION:  auth_failed, auth.c:335

                """)
        #expect(german.kind == .refused("28P01"))
        #expect(german.text.hasSuffix("FATAL:  Passwort-Authentifizierung für Benutzer »x« fehlgeschlagen [28P01]"))
        #expect(german.storeError.kind == .misconfigured)
        let french = PostgresFault(
            connecting:
                "connection to server at \"::1\", port 5432 failed: FATAL:  53300: désolé, trop de clients sont déjà connectés\n"
        )
        #expect(french.storeError.kind == .unreachable)
        #expect(french.advice?.contains("max_connections") == true)
        // No code: a message that only looks like one.
        #expect(PostgresFault(connecting: "could not connect: Connection refused\n").kind == .lost)
        #expect(PostgresFault(connecting: "x:  28p01: y").kind == .lost)
    }

    @Test(
        "a string that libpq refuses without a network is refused by a check, with the word",
        arguments: [
            ("host=a user=b sslmode=no-verify", "no-verify"), ("postgresql://u@h/d?sslmode=no-verify", "no-verify"),
            ("host=a user=b channel_binding=always", "always"), ("host=a user=b gssencmode=sometimes", "sometimes"),
            ("host=a user=b target_session_attrs=master", "master"),
            ("host=a user=b keepalives_idle=long", "keepalives_idle"),
            ("host=a user=b ssl_min_protocol_version=SSLv3", "SSLv3"),
            ("host=a user=b pool_max_conns=10", "pool_max_conns"),
            ("postgresql://u:p@h/d?pgbouncer=true", "pgbouncer"),
            ("postgres://u:p@h/d?sslmode=require&schema=public", "schema"),
            ("jdbc:postgresql://h/d", "jdbc:postgresql://"),
            ("postgresql+psycopg2://u:p@h/d", "postgresql+psycopg2://"),
        ])
    func words(text: String, word: String) {
        let fault = OAuthAccessTokenPostgresStore.fault(in: Secret(text), trustAnchorsFile: "/dev/null")
        #expect(fault?.contains("store.connection") == true, "\(fault ?? "nil")")
        #expect(fault?.contains(word) == true, "\(fault ?? "nil")")
    }

    @Test(
        "an `@` of a password that is not escaped is named as such, and no part of the password is shown",
        arguments: [
            "postgresql://user:hunt@er22@host/db", "postgresql://user:hunter22@@host/db",
            "postgresql://user:hun/t@er22@host/db",
            "postgresql://user:12/hunter22@host/db", "host=hunt@er22 user=x", "postgresql://user:hun?t@er22@host/db",
        ])
    func at(text: String) {
        let fault = OAuthAccessTokenPostgresStore.fault(in: Secret(text), trustAnchorsFile: "/dev/null")
        #expect(fault?.contains("%40") == true, "\(fault ?? "nil")")
        for part in ["hunt", "er22", "hun"] { #expect(fault?.contains(part) == false, "\(fault ?? "nil")") }
    }

    @Test(
        "a word that may belong to a password is not shown",
        arguments: [
            "host=a password=correct horse=hunter22", "postgresql://u:p?hunter22=/x@host/db",
            "host=a password=x hunter22",
            "host=a password = it's hunter22=x",
        ])
    func hidden(text: String) {
        let fault = OAuthAccessTokenPostgresStore.fault(in: Secret(text), trustAnchorsFile: "/dev/null")
        #expect(fault != nil)
        #expect(fault?.contains("hunter22") == false && fault?.contains("horse") == false, "\(fault ?? "nil")")
    }

    @Test(
        "strings that libpq takes pass the check",
        arguments: [
            "host=/run/postgresql user=x", "host=@abstract user=x", "postgresql://u:p%40ss@h:5432/d?sslmode=require",
            "postgres://u:p@h1:1,h2:2/d?target_session_attrs=primary&connect_timeout=3", "postgresql://u@h/d?ssl=true",
            "host = a  user = 'b c'  password = 'it\\'s = @ fine'", "host=a user=me@tenant password=a@b",
            "postgresql://h/d?user=me@tenant&password=x", "host=::1 user=x options='-c geqo=off'",
        ])
    func good(text: String) {
        #expect(OAuthAccessTokenPostgresStore.fault(in: Secret(text), trustAnchorsFile: "/dev/null") == nil)
    }

    @Test("each condition of the database has its own advice")
    func advice() async throws {
        let server = try await PostgresServer()
        let database = try await Postgres(server)
        func fault(_ connection: String, _ change: (inout PostgresStoreSettings) -> Void = { _ in }) async throws
            -> String
        {
            let fault = await storeFault { _ = try await database.store(connection, change) }
            return fault?.description ?? "none"
        }
        let unknown = try await fault("host=no-such-host.invalid user=x")
        #expect(unknown.contains("the name no-such-host.invalid can't be looked up"), "\(unknown)")
        #expect(unknown.contains("correct `host`"), "\(unknown)")
        try await server.sql("ALTER ROLE limited CONNECTION LIMIT 0")
        let quoted = PostgresServer.password.replacing("\\", with: "\\\\").replacing("'", with: "\\'")
        let full = try await fault(
            "host=\(server.folder.path) port=\(server.port) user=limited dbname=postgres password='\(quoted)'")
        #expect(full.contains("[53300]") && full.contains("max_connections"), "\(full)")
        let bouncer = try await PgBouncer(before: server)
        let plain = try await fault("host=127.0.0.1 port=\(bouncer.port) user=postgres sslmode=require")
        #expect(plain.contains("ssl = on"), "\(plain)")
        let untrusted = try await fault("host=localhost port=\(server.port) user=postgres dbname=postgres")
        #expect(untrusted.contains("`sslrootcert`"), "\(untrusted)")
        let option = try await fault("\(server.connection) options='-c nonsense=1'")
        #expect(option.contains("correct `options`"), "\(option)")
        for (version, advice) in [
            (1, "run `heimdallr-proxy store init` of this program"), (99, "install the newer program"),
        ] {
            try await server.sql("UPDATE heimdallr.version SET version = \(version)")
            let tables = try await fault(server.connection)
            #expect(tables.contains("version \(version)") && tables.contains(advice), "\(tables)")
        }
    }

    @Test("a search for all servers waits for each of them, where the settings say so")
    func all() async throws {
        let database = try await Postgres()
        let silent = try [RawListener(), RawListener()]
        let hosts = "127.0.0.1,127.0.0.1,\(database.server.folder.path)"
        let ports = "\(silent[0].port),\(silent[1].port),\(database.server.port)"
        let connection = "host=\(hosts) port=\(ports) user=postgres dbname=postgres sslmode=disable connect_timeout=2"
        let store = try await database.store(connection) {
            $0.answerTime = .milliseconds(900)
            $0.waitsForAllServers = true
        }
        #expect(try await store.report().rows.isEmpty)
    }
}
