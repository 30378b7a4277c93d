/// Decides when the values of observed keys are fetched; see ``LoadingPolicy/whileObserved(stopTimeout:every:)``.
///
/// A pure state machine. Times are measured from the creation of the repository.
///
/// - Complexity: O(log *n*) amortised for *n* observed keys; O(*n* log *n*) for what concerns all of them: ``setActive(_:)``,
///   ``setOnline(_:)`` and ``invalidate(_:)``.
struct ObservedLoadingState<Key: RepositoryKey> {
  enum Request: Hashable {
    /// To be fetched unless it is fresh.
    case refresh(Key)
    /// To be fetched.
    case reload(Key)

    var key: Key {
      switch self {
      case .refresh(let key), .reload(let key): key
      }
    }
  }

  /// A key from its first observer until its last one has been gone for a while.
  private struct Observation {
    /// The place among those that began before.
    let number: UInt64
    /// The schedules of the observers that are there.
    var schedules: Set<LoadingSchedule> = []
    /// When the last fetch ended, or the observation began.
    var lastLoad: Duration
    /// Whether there was a reason to fetch while nothing could be fetched for the key.
    var hasMissedRequest = false
    /// Whether a request goes on that this machine asked for.
    ///
    /// Meanwhile no interval counts.
    var isFetching = false
    /// What there was a reason to do since it began.
    var newRequest: Request?
    /// Whether it is forgotten when the request has ended.
    var hasStopped = false
    /// Tells the alarm that counts from those that were set before it.
    var alarmNumber: UInt64 = 0

    var isObserved: Bool { !schedules.isEmpty }
    var interval: Duration? { schedules.compactMap(\.every).min() }
  }

  private struct Alarm {
    enum Purpose { case stop, interval }
    let key: Key
    let number: UInt64
    let purpose: Purpose
  }

  private var observations: [Key: Observation] = [:]
  /// May hold some that don't count any more.
  private var alarms = DeadlineHeap<Alarm>()
  private var lastNumber: UInt64 = 0
  private var isActive = true
  private var isOnline = true

  /// The number of alarms, those included that don't count any more.
  var alarmCount: Int { alarms.items.count }

  /// The number of keys that are known.
  var count: Int { observations.count }

  private var canLoad: Bool { isActive && isOnline }

  // MARK: - Observers

  /// The first observer with a schedule comes, or another one.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - schedule: The schedule.
  ///   - lastLoad: When the value was fetched; `nil` if that isn't known.
  ///   - now: The present time.
  mutating func begin(
    _ key: Key, _ schedule: LoadingSchedule, lastLoad: Duration? = nil, at now: Duration
  ) -> [Request] {
    if observations[key]?.schedules.contains(schedule) ?? false { return [] }
    var observation = observations[key] ?? Observation(number: makeNumber(), lastLoad: lastLoad ?? now)
    let isNew = observations[key] == nil || observation.hasStopped
    let isBack = !observation.isObserved
    observation.hasStopped = false
    observation.schedules.insert(schedule)
    observations[key] = observation
    setAlarm(of: key)
    guard isBack, isNew || observation.hasMissedRequest else { return [] }
    return requestWhatIsDue(key, at: now)
  }

  /// The last observer with a schedule leaves.
  mutating func end(_ key: Key, _ schedule: LoadingSchedule, at now: Duration) {
    guard observations[key]?.schedules.remove(schedule) != nil else { return }
    guard let observation = observations[key], !observation.isObserved else { return setAlarm(of: key) }
    let number = silenceAlarm(of: key)
    insert(Alarm(key: key, number: number, purpose: .stop), deadline: now + schedule.stopTimeout)
  }

  /// A fetch of a key has ended, by whatever call.
  mutating func recordLoad(of key: Key, at now: Duration) {
    guard let observation = observations[key] else { return }
    observations[key]?.lastLoad = now
    if observation.isObserved { setAlarm(of: key) }
  }

  /// A request has ended that this machine asked for.
  ///
  /// - Parameters:
  ///   - ended: The request.
  ///   - hasSucceeded: Whether the value was fetched, or is fresh.
  ///   - isReasonLeft: Whether what was fetched is older than the reason for it.
  mutating func endFetch(_ ended: Request, hasSucceeded: Bool, isReasonLeft: Bool) -> [Request] {
    let key = ended.key
    guard let observation = observations[key], observation.isFetching else { return [] }
    if observation.hasStopped {
      observations[key] = nil
      return []
    }
    observations[key]?.isFetching = false
    observations[key]?.newRequest = nil
    if observation.isObserved { setAlarm(of: key) }
    let left = [isReasonLeft ? ended : nil, observation.newRequest].compactMap(\.self)
    if left.isEmpty { return [] }
    return request(!hasSucceeded && left.contains(.reload(key)) ? .reload(key) : .refresh(key))
  }

  // MARK: - Reasons to fetch

  /// Takes what is to be fetched now because its time has come.
  mutating func takeDue(at now: Duration) -> [Request] {
    var requests: [Request] = []
    while let first = alarms.first, first.deadline <= now || !counts(first.element) {
      _ = alarms.removeFirst()
      guard counts(first.element) else { continue }
      switch first.element.purpose {
      case .stop: stop(first.element.key)
      // The next one follows when this fetch has ended.
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

  /// When ``takeDue(at:)`` has something to do; `nil` for never.
  ///
  /// After ``takeDue(at:)``.
  var deadline: Duration? { alarms.first?.deadline }

  /// The app becomes active or inactive.
  mutating func setActive(_ isActive: Bool, at now: Duration) -> [Request] {
    let wasActive = self.isActive
    self.isActive = isActive
    return isActive && !wasActive ? requestAll(at: now) : []
  }

  /// The network comes or goes.
  mutating func setOnline(_ isOnline: Bool, at now: Duration) -> [Request] {
    let wasOnline = self.isOnline
    self.isOnline = isOnline
    return isOnline && !wasOnline ? requestAll(at: now) : []
  }

  /// Keys have become stale.
  mutating func invalidate(_ selection: KeySelection<Key>) -> [Request] {
    if case .key(let key) = selection { return observations[key] == nil ? [] : request(.refresh(key)) }
    var requests: [Request] = []
    for key in keysInOrder where selection.contains(key) { requests += request(.refresh(key)) }
    return requests
  }

  private mutating func requestAll(at now: Duration) -> [Request] {
    var requests: [Request] = []
    for key in keysInOrder { requests += requestWhatIsDue(key, at: now) }
    return requests
  }

  private mutating func requestWhatIsDue(_ key: Key, at now: Duration) -> [Request] {
    guard let observation = observations[key] else { return [] }
    let isDue = observation.interval.map { observation.lastLoad + $0 <= now } ?? false
    // Its alarm would be a second reason.
    if isDue { silenceAlarm(of: key) }
    return request(isDue ? .reload(key) : .refresh(key))
  }

  private var keysInOrder: [Key] { observations.sorted { $0.value.number < $1.value.number }.map(\.key) }

  /// Returns a request if it can be made now; otherwise it is made up for.
  private mutating func request(_ request: Request) -> [Request] {
    guard var observation = observations[request.key] else { return [] }
    let number = makeNumber()
    defer { observations[request.key] = observation }
    observation.hasMissedRequest = !canLoad || !observation.isObserved
    if observation.hasMissedRequest { return [] }
    if observation.isFetching {
      // It may be too old. Another one is asked for when it has ended.
      if observation.newRequest != .reload(request.key) { observation.newRequest = request }
      return []
    }
    observation.isFetching = true
    // The next alarm is set when it has ended.
    observation.alarmNumber = number
    return [request]
  }

  // MARK: - Alarms

  private func counts(_ alarm: Alarm) -> Bool { observations[alarm.key]?.alarmNumber == alarm.number }

  /// Sets the alarm of a key that is observed, in the place of an earlier one, unless it is being fetched.
  private mutating func setAlarm(of key: Key) {
    let number = silenceAlarm(of: key)
    guard let observation = observations[key], !observation.isFetching, let interval = observation.interval else {
      return
    }
    insert(Alarm(key: key, number: number, purpose: .interval), deadline: observation.lastLoad + interval)
  }

  private mutating func insert(_ alarm: Alarm, deadline: Duration) {
    // Those that don't count any more are forgotten before they are many.
    if alarms.items.count > 2 * observations.count + 32 {
      let counting = alarms.items.filter { counts($0.element) }
      alarms.removeAll()
      for item in counting { alarms.insert(item.element, deadline: item.deadline) }
    }
    alarms.insert(alarm, deadline: deadline)
  }

  /// - Returns: The number of the alarm that follows, if one does.
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
