#if os(Linux)
  internal import Dispatch
  internal import Foundation
  internal import Multicast

  #if canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  /// A thread that runs one exchange after the other, over connections that it keeps.
  final class CurlWorker: Sendable {
    enum Order {
      case run(CurlJob, Origin)
      case leave
    }

    /// How long a thread rests, and its connections stay open.
    private static let restTime = DispatchTimeInterval.seconds(30)

    private let pool: CurlPool
    private let order = Lock<Order?>(nil)
    private let orders = DispatchSemaphore(value: 0)

    init(pool: CurlPool) {
      self.pool = pool
    }

    /// Starts the thread.
    func start(with job: CurlJob, of origin: Origin) {
      let thread = Thread { self.work(job, origin) }
      thread.name = "CurlTransport"
      thread.stackSize = 512 * 1024
      thread.start()
    }

    /// Gives an order to the thread, which rests.
    func give(_ order: Order) {
      self.order.withLock { $0 = order }
      orders.signal()
    }

    private func work(_ job: CurlJob, _ origin: Origin) {
      // The app's signals are not this thread's; and a broken connection is an error here, not a SIGPIPE.
      var signals = sigset_t()
      sigfillset(&signals)
      pthread_sigmask(SIG_BLOCK, &signals, nil)

      let connections = CurlConnections()
      var (job, origin) = (job, origin)
      while true {
        connections.run(job)
        switch pool.finish(self, of: origin) {
        case .run(let next):
          job = next
        case .rest:
          guard case .run(let next, let nextOrigin) = rest() else { return }
          (job, origin) = (next, nextOrigin)
        case .leave:
          return
        }
      }
    }

    private func rest() -> Order {
      if orders.wait(timeout: .now() + Self.restTime) == .timedOut {
        if pool.leave(self) { return .leave }
        orders.wait()
      }
      return order.withLock { $0.take() } ?? .leave
    }
  }

  extension CurlWorker: Equatable {
    static func == (lhs: CurlWorker, rhs: CurlWorker) -> Bool { lhs === rhs }
  }
#endif
