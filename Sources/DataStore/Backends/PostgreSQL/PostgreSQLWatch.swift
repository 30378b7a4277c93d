#if PostgreSQL
  internal import Dispatch

  #if canImport(Darwin)
    internal import Darwin
  #elseif canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  /// Notices external changes for a ``PostgreSQLBackend``.
  ///
  /// It receives the server's notifications on its own connection. A lost connection is opened again. The server sent
  /// no notifications of the changes meanwhile, so each new connection counts as a notification.
  final class PostgreSQLWatch {
    private let listener: Listener

    init(_ address: String, timeout: Duration, onChange: @escaping @Sendable () -> Void) throws(SystemError) {
      listener = Listener(address, timeout: timeout, onChange: onChange)
      try listener.start()
    }

    deinit {
      listener.end()
    }

    /// Receives the notifications on its own queue.
    private final class Listener: @unchecked Sendable {
      // Unchecked: all mutable state is used only on the queue.

      /// The longest delay between two attempts to connect, in milliseconds.
      private static let longestDelay = 1_000

      private let address: String
      private let timeout: Duration
      private let onChange: @Sendable () -> Void
      private let queue = DispatchQueue(label: "DataStore.PostgreSQLWatch")
      private var connection: PostgreSQLConnection?
      private var source: (any DispatchSourceRead)?
      private var hasEnded = false
      private var delay = 10

      init(_ address: String, timeout: Duration, onChange: @escaping @Sendable () -> Void) {
        (self.address, self.timeout, self.onChange) = (address, timeout, onChange)
      }

      func start() throws(SystemError) {
        let result = queue.sync { () -> Result<Void, SystemError> in
          do throws(SystemError) {
            return .success(try connect())
          } catch {
            return .failure(error)
          }
        }
        try result.get()
      }

      func end() {
        queue.async {
          self.hasEnded = true
          self.disconnect()
        }
      }

      private func connect() throws(SystemError) {
        let connection = try PostgreSQLConnection(address, timeout: timeout)
        try connection.run(script: "LISTEN \(PostgreSQLLayout.channel)")
        // libpq closes the socket as soon as it detects that the connection is lost. Another file may then get the same
        // number while the source still watches it, so the source gets a descriptor of its own.
        let socket = dup(connection.socket)
        guard socket >= 0 else { throw SystemError(code: errno, operation: "dup", path: connection.place) }
        let source = DispatchSource.makeReadSource(fileDescriptor: socket, queue: queue)
        source.setEventHandler { [weak self] in self?.read() }
        source.setCancelHandler { close(socket) }
        (self.connection, self.source, delay) = (connection, source, 10)
        source.activate()
      }

      private func disconnect() {
        source?.cancel()
        (source, connection) = (nil, nil)
      }

      private func read() {
        guard let connection else { return }
        do throws(SystemError) {
          if try connection.takeNotifications() { onChange() }
          if connection.isLost { reconnect() }
        } catch {
          reconnect()
        }
      }

      private func reconnect() {
        disconnect()
        queue.asyncAfter(deadline: .now() + .milliseconds(delay)) { [weak self] in
          guard let self, !hasEnded else { return }
          delay = min(2 * delay, Self.longestDelay)
          do throws(SystemError) {
            try connect()
            onChange()
          } catch {
            // The next call of the store reports that the server can't be reached.
            reconnect()
          }
        }
      }
    }
  }
#endif
