#if os(Linux)
  internal import Foundation
  internal import Multicast

  /// A request, and the transfer that takes its response.
  struct CurlJob: Sendable {
    let request: HTTPRequest
    let transfer: Transfer

    /// Ends the transfer without an exchange, as the system has no thread for it.
    func fail() {
      guard transfer.begin(Transfer.Network(stop: {}, goOn: {})) else { return }
      let description = "The system has no thread left for the request"
      transfer.end(error: URLError(.cannotConnectToHost, userInfo: [NSLocalizedDescriptionKey: description]))
    }
  }

  /// The threads of a `CurlTransport`: performs what ``CurlPoolState`` decides.
  final class CurlPool: Sendable {
    private let state: Lock<CurlPoolState<CurlWorker, CurlJob>>

    init(maximumConnectionsPerHost: Int) {
      state = Lock(CurlPoolState(maximumConnectionsPerHost: maximumConnectionsPerHost))
    }

    /// Has a job run as soon as its host has a free connection.
    func add(_ job: CurlJob, to origin: Origin) {
      switch state.withLock({ $0.add(job, to: origin) }) {
      case .wake(let worker): worker.give(.run(job, origin))
      case .start:
        if CurlWorker(pool: self).start(with: job, of: origin) { break }
        for job in [job] + state.withLock({ $0.startFailed(of: origin) }) { job.fail() }
      case .wait: break
      }
    }

    func finish(_ worker: CurlWorker, of origin: Origin) -> CurlPoolState<CurlWorker, CurlJob>.FinishAction {
      state.withLock { $0.finish(worker, of: origin) }
    }

    func leave(_ worker: CurlWorker) -> Bool {
      state.withLock { $0.leave(worker) }
    }

    /// Ends the idle threads; the busy ones end with their jobs.
    func close() {
      for worker in state.withLock({ $0.close() }) { worker.give(.leave) }
    }
  }
#endif
