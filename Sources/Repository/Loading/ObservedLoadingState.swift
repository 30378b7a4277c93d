/// Decides when the values of observed keys are fetched; see ``LoadingPolicy/whileObserved(stopTimeout:every:)``.
///
/// A pure state machine: methods record events, and return the requests to perform now. Times are measured from the
/// creation of the repository.
///
/// - Complexity: O(log *n*) amortized, where *n* is the number of observed keys. O(*n* log *n*) for
///   ``setActive(_:at:)``, ``setOnline(_:at:)``, and ``invalidate(_:)`` unless a single key is selected.
struct ObservedLoadingState<Key: RepositoryKey> {
  enum Request: Hashable {
    /// Fetches the value unless it is fresh.
    case refresh(Key)
    /// Fetches the value.
    case reload(Key)

    var key: Key {
      switch self {
      case .refresh(let key), .reload(let key): key
      }
    }
  }

  /// The observation of a key, from its first observer until the stop timeout after its last observer has passed.
  private struct Observation {
    /// Its place in the order in which observations began.
    let number: UInt64
    /// The schedules of the current observers.
    var schedules: Set<LoadingSchedule> = []
    /// The time at which the last fetch ended, or at which the observation began if that isn't known.
    var lastLoad: Duration
    /// Whether a fetch was due while nothing could be fetched for the key.
    var hasMissedRequest = false
    /// Whether a request that this state machine returned is in progress.
    ///
    /// During a request, no alarm for the interval is set.
    var isFetching = false
    /// The request that became due since the one in progress began.
    var newRequest: Request?
    /// Whether the stop timeout passed during a request, so that the observation is removed when the request ends.
    var hasStopped = false
    /// The number of the valid alarm, which distinguishes it from earlier ones.
    var alarmNumber: UInt64 = 0

    var isObserved: Bool { !schedules.isEmpty }
    var interval: Duration? { schedules.compactMap(\.every).min() }
  }

  private struct KeyAlarm {
    enum Purpose { case stop, interval }
    let key: Key
    let number: UInt64
    let purpose: Purpose
  }

  private var observations: [Key: Observation] = [:]
  /// Alarms by deadline, possibly including outdated ones.
  private var alarms = DeadlineHeap<KeyAlarm>()
  private var lastNumber: UInt64 = 0
  private var isActive = true
  private var isOnline = true

  /// The number of alarms, including outdated ones.
  var alarmCount: Int { alarms.items.count }

  /// The number of keys that count as observed.
  var count: Int { observations.count }

  private var canFetch: Bool { isActive && isOnline }

  // MARK: - Observers

  /// Records an observer with a schedule.
  ///
  /// - Parameters:
  ///   - key: The key of the value.
  ///   - schedule: The schedule of the observer.
  ///   - lastLoad: The time at which the value was fetched; `nil` if it isn't known.
  ///   - now: The present time.
  mutating func begin(
    _ key: Key, _ schedule: LoadingSchedule, lastLoad: Duration? = nil, at now: Duration
  ) -> [Request] {
    if observations[key]?.schedules.contains(schedule) ?? false { return [] }
    var observation = observations[key] ?? Observation(number: makeNumber(), lastLoad: lastLoad ?? now)
    let isNewObservation = observations[key] == nil || observation.hasStopped
    let isFirstObserver = !observation.isObserved
    observation.hasStopped = false
    observation.schedules.insert(schedule)
    observations[key] = observation
    setAlarm(of: key)
    guard isFirstObserver, isNewObservation || observation.hasMissedRequest else { return [] }
    return requestReloadOrRefresh(key, at: now)
  }

  /// Records that the last of the observers with this key and this schedule is gone.
  mutating func end(_ key: Key, _ schedule: LoadingSchedule, at now: Duration) {
    guard observations[key]?.schedules.remove(schedule) != nil else { return }
    guard let observation = observations[key], !observation.isObserved else { return setAlarm(of: key) }
    let number = silenceAlarm(of: key)
    insert(KeyAlarm(key: key, number: number, purpose: .stop), deadline: now + schedule.stopTimeout)
  }

  /// Records that the value of a key was fetched, regardless of which call did so, or that a request that this state
  /// machine returned has failed.
  mutating func recordLoad(of key: Key, at now: Duration) {
    guard let observation = observations[key] else { return }
    observations[key]?.lastLoad = now
    if observation.isObserved { setAlarm(of: key) }
  }

  /// The result of a request.
  enum RequestResult: CaseIterable {
    case fetched
    /// The value is fresh, so the server wasn't asked.
    case wasFresh
    case failed
  }

  /// Records that a request that this state machine returned has ended.
  ///
  /// - Parameters:
  ///   - endedRequest: The request.
  ///   - result: The result of the request.
  ///   - isStillDue: Whether the request is still due: the value was invalidated after its fetch began, or the fetch
  ///     failed and may have begun before the request, which then joined it.
  mutating func endRequest(_ endedRequest: Request, _ result: RequestResult, isStillDue: Bool) -> [Request] {
    let key = endedRequest.key
    guard let observation = observations[key], observation.isFetching else { return [] }
    if observation.hasStopped {
      observations[key] = nil
      return []
    }
    observations[key]?.isFetching = false
    observations[key]?.newRequest = nil
    if observation.isObserved { setAlarm(of: key) }
    // A fetched value is new enough for the request that became due meanwhile, unless `isStillDue` says otherwise.
    let due = [isStillDue ? endedRequest : nil, result == .fetched ? nil : observation.newRequest].compactMap(\.self)
    if due.isEmpty { return [] }
    // If the request didn't fail, the value was fetched or found fresh, so a refresh suffices, even if a reload is due.
    return request(result == .failed && due.contains(.reload(key)) ? .reload(key) : .refresh(key))
  }

  // MARK: - Requests

  /// Returns the requests that are due, and ends the observations whose stop timeout has passed.
  mutating func takeDue(at now: Duration) -> [Request] {
    var requests: [Request] = []
    while let first = alarms.first, first.deadline <= now || !isValid(first.element) {
      _ = alarms.removeFirst()
      guard isValid(first.element) else { continue }
      switch first.element.purpose {
      case .stop: stop(first.element.key)
      // The next alarm is set when this fetch has ended.
      case .interval: requests += request(.reload(first.element.key))
      }
    }
    return requests
  }

  private mutating func stop(_ key: Key) {
    if observations[key]?.isFetching ?? false {
      silenceAlarm(of: key)
      observations[key]?.hasStopped = true
    } else {
      observations[key] = nil
    }
  }

  /// The time of the next call of ``takeDue(at:)``; `nil` if none is needed.
  ///
  /// Valid after a call of ``takeDue(at:)``, which removes outdated alarms.
  var deadline: Duration? { alarms.first?.deadline }

  /// Records that the app has become active or inactive.
  mutating func setActive(_ isActive: Bool, at now: Duration) -> [Request] {
    let wasActive = self.isActive
    self.isActive = isActive
    return isActive && !wasActive ? requestAll(at: now) : []
  }

  /// Records that the network has become available or unavailable.
  mutating func setOnline(_ isOnline: Bool, at now: Duration) -> [Request] {
    let wasOnline = self.isOnline
    self.isOnline = isOnline
    return isOnline && !wasOnline ? requestAll(at: now) : []
  }

  /// Records that keys have become stale.
  mutating func invalidate(_ selection: KeySelection<Key>) -> [Request] {
    if case .key(let key) = selection { return observations[key] == nil ? [] : request(.refresh(key)) }
    var requests: [Request] = []
    for key in keysInOrder where selection.contains(key) { requests += request(.refresh(key)) }
    return requests
  }

  private mutating func requestAll(at now: Duration) -> [Request] {
    var requests: [Request] = []
    for key in keysInOrder { requests += requestReloadOrRefresh(key, at: now) }
    return requests
  }

  /// Requests a reload if the interval of a key has passed, and a refresh otherwise.
  private mutating func requestReloadOrRefresh(_ key: Key, at now: Duration) -> [Request] {
    guard let observation = observations[key] else { return [] }
    let isReloadDue = observation.interval.map { observation.lastLoad + $0 <= now } ?? false
    // The key's alarm, if any, is due too. If nothing can be fetched now, the alarm would only miss the same reload.
    if isReloadDue { silenceAlarm(of: key) }
    return request(isReloadDue ? .reload(key) : .refresh(key))
  }

  private var keysInOrder: [Key] { observations.sorted { $0.value.number < $1.value.number }.map(\.key) }

  /// Returns a request if it can be made now.
  ///
  /// Otherwise records that it was missed, or that it follows the one in progress.
  private mutating func request(_ request: Request) -> [Request] {
    guard var observation = observations[request.key] else { return [] }
    let newAlarmNumber = makeNumber()
    defer { observations[request.key] = observation }
    observation.hasMissedRequest = !canFetch || !observation.isObserved
    if observation.hasMissedRequest { return [] }
    if observation.isFetching {
      // Made after the request in progress, unless that one fetches the value.
      if observation.newRequest != .reload(request.key) { observation.newRequest = request }
      return []
    }
    observation.isFetching = true
    // Invalidates the present alarm. The next one is set when the request has ended.
    observation.alarmNumber = newAlarmNumber
    return [request]
  }

  // MARK: - Alarms

  private func isValid(_ alarm: KeyAlarm) -> Bool { observations[alarm.key]?.alarmNumber == alarm.number }

  /// Replaces the alarm of an observed key.
  ///
  /// Sets no new one while a request is in progress, or if no schedule has an interval.
  private mutating func setAlarm(of key: Key) {
    let number = silenceAlarm(of: key)
    guard let observation = observations[key], !observation.isFetching, let interval = observation.interval else {
      return
    }
    insert(KeyAlarm(key: key, number: number, purpose: .interval), deadline: observation.lastLoad + interval)
  }

  private mutating func insert(_ alarm: KeyAlarm, deadline: Duration) {
    // Removes outdated alarms before there are too many of them.
    if alarms.items.count > 2 * observations.count + 32 {
      let validItems = alarms.items.filter { isValid($0.element) }
      alarms.removeAll()
      for item in validItems { alarms.insert(item.element, deadline: item.deadline) }
    }
    alarms.insert(alarm, deadline: deadline)
  }

  /// Invalidates the alarm of a key.
  ///
  /// - Returns: The number for the next alarm of the key.
  @discardableResult
  private mutating func silenceAlarm(of key: Key) -> UInt64 {
    let number = makeNumber()
    observations[key]?.alarmNumber = number
    return number
  }

  private mutating func makeNumber() -> UInt64 {
    lastNumber += 1
    return lastNumber
  }
}
