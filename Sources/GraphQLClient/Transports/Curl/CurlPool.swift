#if os(Linux)
  internal import Foundation
  internal import Multicast

  /// A request, and the transfer that receives its response.
  struct CurlJob: Sendable {
    let request: HTTPRequest
    let transfer: Transfer

    /// Fails the transfer, because the system couldn't create a thread for the exchange.
    func fail() {
      // A transfer can end only after it has begun.
      guard transfer.begin(Transfer.Network(stop: {}, resume: {})) else { return }
      let description = "The system could not create a thread for the request"
      transfer.end(error: URLError(.cannotConnectToHost, userInfo: [NSLocalizedDescriptionKey: description]))
    }
  }

  /// The threads of a `CurlTransport`, to which a ``CurlPoolState`` assigns the jobs.
  final class CurlPool: Sendable {
    private let state: Lock<CurlPoolState<CurlWorker, CurlJob>>

    init(maximumConnectionsPerHost: Int) {
      state = Lock(CurlPoolState(maximumConnectionsPerHost: maximumConnectionsPerHost))
    }

    /// Schedules a job, which waits while its host has as many busy threads as the limit allows; see ``CurlPoolState``.
    ///
    /// If the system can't create the thread that the job needs, the job fails. The waiting jobs of its host fail too,
    /// unless another thread will run them.
    func add(_ job: CurlJob, to origin: Origin) {
      switch state.withLock({ $0.add(job, to: origin) }) {
      case .wake(let worker): worker.give(.run(job, origin))
      case .start:
        if CurlWorker(pool: self).start(with: job, of: origin) { break }
        for failedJob in [job] + state.withLock({ $0.startFailed(of: origin) }) { failedJob.fail() }
      case .wait: break
      }
    }

    func finish(_ worker: CurlWorker, of origin: Origin) -> CurlPoolState<CurlWorker, CurlJob>.FinishAction {
      state.withLock { $0.finish(worker, of: origin) }
    }

    /// Returns whether a worker that has been idle for too long may end, and removes it if so.
    func retire(_ worker: CurlWorker) -> Bool {
      state.withLock { $0.retire(worker) }
    }

    /// Ends the idle threads; a busy thread ends when its host has no more waiting jobs.
    func close() {
      for worker in state.withLock({ $0.close() }) { worker.give(.exit) }
    }
  }
#endif
