import Foundation

@testable import DataStore

/// The place of the store of one run of editors; it is removed when the object is released.
final class EditorStore: Sendable {
  enum Kind: CaseIterable {
    case files
    #if SQLite
      case database
    #endif
    #if PostgreSQL
      case server
    #endif

    /// Those that access files themselves, so that a process can be killed at each of their calls.
    static var inFileSystem: [Kind] {
      #if SQLite
        [.files, .database]
      #else
        [.files]
      #endif
    }

    /// All, without the one on a server if `MOMENTS_POSTGRESQL` names none.
    static var available: [Kind] {
      #if PostgreSQL
        allCases.filter { $0 != .server || EditorStore.server != nil }
      #else
        allCases
      #endif
    }
  }

  /// The place, as the editors expect it.
  let place: String
  #if PostgreSQL
    private static let server = ProcessInfo.processInfo.environment["MOMENTS_POSTGRESQL"]
    /// The schema on the server, if the store is there.
    private let schema: String?
  #endif

  init(_ kind: Kind, in folder: URL) throws {
    #if PostgreSQL
      schema = kind == .server ? "editors_" + UUID().uuidString.lowercased().replacing("-", with: "") : nil
    #endif
    switch kind {
    case .files: place = folder.appending(path: "store").path(percentEncoded: false)
    #if SQLite
      case .database: place = folder.appending(path: "store.sqlite").path(percentEncoded: false)
    #endif
    #if PostgreSQL
      case .server:
        place = "\(Self.server!) options='-csearch_path=\(schema!)'"
        try Self.connection().run(script: "CREATE SCHEMA \(schema!)")
    #endif
    }
  }

  #if PostgreSQL
    deinit {
      guard let schema else { return }
      // A schema that remains doesn't affect other tests.
      _ = try? Self.connection().run(script: "SET client_min_messages = warning; DROP SCHEMA \(schema) CASCADE")
    }

    private static func connection() throws -> PostgreSQLConnection {
      try PostgreSQLConnection(server!, timeout: .seconds(60))
    }
  #endif

  /// Waits until the effects of a process that has been killed are final.
  ///
  /// Until a server has ended the process's connections, it may still make a commit that the process has sent.
  func waitForEffects(of process: pid_t) throws {
    #if PostgreSQL
      guard schema != nil else { return }
      try Self.connection().run(
        script: """
          DO $$ BEGIN
            WHILE EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'editor-\(process)') LOOP
              PERFORM pg_sleep(0.005), pg_stat_clear_snapshot();
            END LOOP;
          END $$
          """)
    #endif
  }
}
