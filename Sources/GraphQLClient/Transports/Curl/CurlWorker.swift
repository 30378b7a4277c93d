#if os(Linux)
  internal import Dispatch
  internal import Foundation
  internal import Multicast

  #if canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  /// A thread that runs one exchange after another and keeps its connections between them.
  final class CurlWorker: Sendable {
    enum Order {
      case run(CurlJob, Origin)
      case exit
    }

    /// The time for which an idle thread waits for an order and keeps its connections open.
    private static let idleTime = DispatchTimeInterval.seconds(30)

    private let pool: CurlPool
    private let order = Lock<Order?>(nil)
    private let orderSignal = DispatchSemaphore(value: 0)

    init(pool: CurlPool) {
      self.pool = pool
    }

    /// Starts the thread, and returns whether the system could create it.
    func start(with job: CurlJob, of origin: Origin) -> Bool {
      give(.run(job, origin))
      var thread: pthread_t = 0
      let worker = Unmanaged.passRetained(self)
      // Foundation's `Thread` doesn't report that the system couldn't create a thread.
      let code = pthread_create(&thread, nil, runWorker, worker.toOpaque())
      guard code == 0 else {
        worker.release()
        return false
      }
      pthread_detach(thread)
      return true
    }

    /// Gives an order to the thread, which must be new or idle.
    func give(_ order: Order) {
      self.order.withLock { $0 = order }
      orderSignal.signal()
    }

    /// Runs jobs on the calling thread until the pool ends the thread, or the thread has been idle for too long.
    fileprivate func work() {
      // The program's signals are handled by other threads. Blocking SIGPIPE makes a lost connection an ordinary error.
      var signals = sigset_t()
      sigfillset(&signals)
      pthread_sigmask(SIG_BLOCK, &signals, nil)

      guard case .run(var job, var origin) = waitForOrder() else { return }
      var connections = CurlConnections()
      while true {
        if !connections.isUsable { connections = CurlConnections() }
        connections.run(job)
        switch pool.finish(self, of: origin) {
        case .run(let next):
          job = next
        case .idle:
          guard case .run(let next, let nextOrigin) = waitForOrder() else { return }
          (job, origin) = (next, nextOrigin)
        case .exit:
          return
        }
      }
    }

    private func waitForOrder() -> Order {
      if orderSignal.wait(timeout: .now() + Self.idleTime) == .timedOut {
        if pool.retire(self) { return .exit }
        // In the meantime the pool has chosen this thread for an order.
        orderSignal.wait()
      }
      return order.withLock { $0.take() } ?? .exit
    }
  }

  private func runWorker(_ worker: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let worker { Unmanaged<CurlWorker>.fromOpaque(worker).takeRetainedValue().work() }
    return nil
  }

  extension CurlWorker: Equatable {
    static func == (lhs: CurlWorker, rhs: CurlWorker) -> Bool { lhs === rhs }
  }
#endif
