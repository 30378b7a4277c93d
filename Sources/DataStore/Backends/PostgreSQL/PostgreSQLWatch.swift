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
  /// It receives the server's notifications on its own connection, on which it first listens and then registers; see
  /// ``PostgreSQLLayout``. If this connection is lost, the watch opens a new one. The server may have sent no
  /// notification of a change before the registration, so the watch notifies the store after each registration. The
  /// exception is a registration at the start, because the store checks for changes when the watch has started.
  final class PostgreSQLWatch {
    private let listener: Listener

    /// Starts to watch.
    ///
    /// If another client has locked the store for longer than the timeout, the watch registers later, and then notifies
    /// the store.
    ///
    /// - Parameters:
    ///   - address: The address of the server.
    ///   - timeout: The timeout of each later exchange.
    ///   - deadline: The deadline of this call.
    ///   - writer: The number of the store's connection, whose changes need no notifications.
    ///   - onChange: Called after each notification.
    init(
      _ address: String, timeout: Duration, deadline: PostgreSQLDeadline, knowingChangesOf writer: Int64,
      onChange: @escaping @Sendable () -> Void
    ) throws(SystemError) {
      listener = Listener(address, timeout: timeout, knowingChangesOf: writer, onChange: onChange)
      do throws(SystemError) { try listener.start(by: deadline) } catch {
        // The store may be suspended next, so nothing may be left that is still being closed then.
        listener.endAndWait()
        throw error
      }
    }

    deinit {
      listener.end()
    }

    /// Ends the watch, and waits until its connection is closed.
    ///
    /// If the server is silent, that takes as long as the exchange in progress and one more.
    func end() {
      listener.endAndWait()
    }

    /// Registers again, because the store has a new connection, and notifies once.
    ///
    /// From then on, the changes of the earlier connection cause notifications, because the server may make the last
    /// commit of that connection late, without the store's knowledge.
    ///
    /// - Parameter writer: The number of the new connection.
    func replaceWriter(by writer: Int64) {
      listener.replaceWriter(by: writer)
    }

    /// Notifies once more after a delay, unless such a notification is already pending.
    ///
    /// The store needs it after a failed call, which may have been the check that followed the last notification, and
    /// after a commit of unknown outcome.
    ///
    /// The delay doubles with each repetition, until ``recordCheck()`` resets it. Its maximum is the timeout, but not
    /// less than 1 second or more than 60 seconds. A check that fails may take about as long as the timeout. A delay of
    /// similar length leaves the store time for other calls.
    func repeatNotification() {
      listener.repeatNotification()
    }

    /// Resets the delay of repeated notifications, because a snapshot, such as that of a check, has succeeded.
    func recordCheck() {
      listener.recordCheck()
    }

    /// Receives the notifications on its own queue.
    private final class Listener: @unchecked Sendable {
      // Unchecked: all mutable state is used only on the queue.

      /// The delay before the first attempt to connect again, and before the first repeated notification, in
      /// milliseconds.
      private static let shortestDelay = 10
      /// The longest delay between two attempts to connect, in milliseconds.
      private static let longestReconnectionDelay = 1_000
      /// The longest delay before a repeated notification, in milliseconds.
      private let longestRepetitionDelay: Int

      private let address: String
      private let timeout: Duration
      private let onChange: @Sendable () -> Void
      private let queue = DispatchQueue(label: "DataStore.PostgreSQLWatch")
      private var connection: PostgreSQLConnection?
      /// The number of the connection on which the store makes its changes.
      private var writer: Int64
      private var source: ReadSource?
      private var hasEnded = false
      /// Contains the sockets of sources that are being closed.
      private let closings = DispatchGroup()
      /// The delay before the next attempt to connect, in milliseconds.
      private var reconnectionDelay = Listener.shortestDelay
      /// The delay before the next repeated notification, in milliseconds.
      private var repetitionDelay = Listener.shortestDelay
      /// Whether a repeated notification is pending.
      private var isRepetitionPending = false

      init(
        _ address: String, timeout: Duration, knowingChangesOf writer: Int64, onChange: @escaping @Sendable () -> Void
      ) {
        (self.address, self.timeout, self.writer, self.onChange) = (address, timeout, writer, onChange)
        longestRepetitionDelay = 1_000 * Int(min(max(1, timeout.components.seconds), 60))
      }

      func start(by deadline: PostgreSQLDeadline) throws(SystemError) {
        let result = queue.sync { () -> Result<Void, SystemError> in
          defer { connection?.endCall() }
          do throws(SystemError) {
            try connect(by: deadline)
            do throws(SystemError) { try register() } catch {
              guard error.isLockout else { throw error }
              // The watch registers as soon as the client that has locked the store allows it, and then notifies.
              reconnectLater()
            }
            return .success(())
          } catch {
            return .failure(error)
          }
        }
        try result.get()
      }

      func end() {
        queue.async { self.endOnQueue() }
      }

      func endAndWait() {
        queue.sync { endOnQueue() }
        closings.wait()
      }

      private func endOnQueue() {
        hasEnded = true
        do throws(SystemError) { try connection?.run(PostgreSQLLayout.unregisterWatch) } catch {
          // A later registration, of any watch, deletes this one.
        }
        disconnect()
      }

      /// Opens a connection that receives notifications.
      ///
      /// - Parameter deadline: The deadline of the store's call; `nil` if each exchange has one of its own.
      private func connect(by deadline: PostgreSQLDeadline? = nil) throws(SystemError) {
        let connection = try PostgreSQLConnection(address, timeout: timeout, deadline: deadline)
        try connection.run(script: PostgreSQLLayout.settings(timeout: timeout))
        try connection.run(script: "LISTEN \(PostgreSQLLayout.channel)")
        // libpq closes the socket as soon as it detects that the connection is lost. Another file may then get the same
        // descriptor while the source still watches it, so the source gets a descriptor of its own.
        let socket = fcntl(connection.socket, F_DUPFD_CLOEXEC, 0)
        guard socket >= 0 else { throw SystemError(code: errno, operation: "fcntl", path: connection.place) }
        do throws(SystemError) {
          source = try ReadSource(of: socket, on: queue) { [weak self] in
            self?.readNotifications()
            return true
          } onRelease: { [closings] in
            close(socket)
            closings.leave()
          }
        } catch {
          close(socket)
          throw error
        }
        self.connection = connection
      }

      /// Registers the connection, after it has begun to listen, and resets the delay between attempts to connect.
      private func register() throws(SystemError) {
        try connection?.run(PostgreSQLLayout.registerWatch, .integer(writer))
        reconnectionDelay = Self.shortestDelay
      }

      func replaceWriter(by writer: Int64) {
        queue.async {
          self.writer = writer
          // If the connection is lost, the next one registers.
          if self.hasEnded || self.connection == nil { return }
          do throws(SystemError) {
            try self.register()
            self.onChange()
          } catch {
            self.reconnectLater()
          }
        }
      }

      private func disconnect() {
        if let source {
          closings.enter()
          source.cancel()
        }
        (source, connection) = (nil, nil)
      }

      func repeatNotification() {
        queue.async {
          // If the connection is lost, a notification follows the registration of the next one.
          if self.hasEnded || self.isRepetitionPending || self.connection == nil { return }
          self.isRepetitionPending = true
          self.queue.asyncAfter(deadline: .now() + .milliseconds(self.repetitionDelay)) { [weak self] in
            guard let self, !hasEnded else { return }
            isRepetitionPending = false
            repetitionDelay = min(2 * repetitionDelay, longestRepetitionDelay)
            onChange()
          }
        }
      }

      func recordCheck() {
        queue.async { self.repetitionDelay = Self.shortestDelay }
      }

      private func readNotifications() {
        guard let connection else { return }
        do throws(SystemError) {
          if try connection.takeNotifications() > 0 { onChange() }
          if connection.isLost { reconnectLater() }
        } catch {
          reconnectLater()
        }
      }

      private func reconnectLater() {
        disconnect()
        queue.asyncAfter(deadline: .now() + .milliseconds(reconnectionDelay)) { [weak self] in
          guard let self, !hasEnded else { return }
          reconnectionDelay = min(2 * reconnectionDelay, Self.longestReconnectionDelay)
          do throws(SystemError) {
            try connect()
            try register()
            onChange()
          } catch {
            // The next call of the store reports that the server can't be reached.
            reconnectLater()
          }
        }
      }
    }
  }
#endif
