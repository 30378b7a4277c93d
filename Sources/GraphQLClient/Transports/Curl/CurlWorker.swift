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

    /// Starts the thread; returns whether the system could make one.
    func start(with job: CurlJob, of origin: Origin) -> Bool {
      give(.run(job, origin))
      var thread: pthread_t = 0
      let worker = Unmanaged.passRetained(self)
      // Not Foundation's `Thread`, which does not say when the system has no thread left.
      let code = pthread_create(&thread, nil, workOfThread, worker.toOpaque())
      guard code == 0 else {
        worker.release()
        return false
      }
      pthread_detach(thread)
      return true
    }

    /// Gives an order to the thread, which rests.
    func give(_ order: Order) {
      self.order.withLock { $0 = order }
      orders.signal()
    }

    fileprivate func work() {
      // The app's signals are not this thread's; and a broken connection is an error here, not a SIGPIPE.
      var signals = sigset_t()
      sigfillset(&signals)
      pthread_sigmask(SIG_BLOCK, &signals, nil)

      guard case .run(var job, var origin) = rest() else { return }
      var connections = CurlConnections()
      while true {
        if !connections.isUsable { connections = CurlConnections() }
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

  private func workOfThread(_ worker: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let worker { Unmanaged<CurlWorker>.fromOpaque(worker).takeRetainedValue().work() }
    return nil
  }

  extension CurlWorker: Equatable {
    static func == (lhs: CurlWorker, rhs: CurlWorker) -> Bool { lhs === rhs }
  }
#endif
