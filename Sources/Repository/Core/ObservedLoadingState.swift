/// Decides when the values of observed keys are fetched; see ``LoadingPolicy/whileObserved(stopTimeout:every:)``.
///
/// A pure state machine: methods record events, and return the requests to perform now. Times are measured from the
/// creation of the repository.
///
/// A request needs one of a limited number of slots. Requests get free slots in the order in which they became due, at
/// most one for each key. A request that exceeds a time limit releases its slot, so a server that doesn't reply delays
/// the other keys by that time at most.
///
/// Many devices may do the same at the same moment: a network that is back reconnects all of them, and a notification
/// opens an app on all of them. The fetches that follow, and those at intervals, therefore begin after random delays.
///
/// - Complexity: O(log *n*) amortized, where *n* is the number of observed keys. O(*n* log *n*) for
///   ``setActive(_:at:)`` and ``setOnline(_:isDelayed:at:)``, for the call of ``takeDue(at:)`` at the end of the delay
///   that follows them, and for ``invalidate(_:at:)`` unless a single key is selected.
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
    /// The part of the maximum variation by which the interval after the last fetch is longer, from 0 up to 1.
    ///
    /// It is constant until the next fetch, so that observers who come and go don't move the end of the interval.
    var intervalVariation: Double
    /// Whether a fetch was due while nothing could be fetched for the key.
    var hasMissedRequest = false
    /// The request that waits for a slot, and the number of its place in the queue.
    ///
    /// Like a request in progress, it replaces the alarm for the interval.
    var waiting: (request: Request, number: UInt64)?
    /// Whether a request that this state machine returned is in progress.
    ///
    /// During a request, no alarm for the interval is set.
    var isFetching = false
    /// The number of the slot of the request in progress; `nil` if there is no request, or it has released its slot.
    var slotNumber: UInt64?
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

  /// A place in the queue, or a slot.
  ///
  /// It is void if the key's observation has a different number.
  private struct Place {
    let key: Key
    let number: UInt64
  }

  /// The time after which a request releases its slot.
  static var slotTimeout: Duration { .seconds(5) }
  /// The maximum time by which the fetches are delayed when the network becomes available.
  static var maximumReconnectionDelay: Duration { .seconds(2) }
  /// The maximum time by which the fetches are delayed when the app becomes active.
  ///
  /// It is short, because the user sees the old values meanwhile.
  static var maximumActivationDelay: Duration { .milliseconds(250) }
  /// The maximum part of an interval that is added to it.
  static var maximumIntervalVariation: Double { 0.1 }

  private let slotCount: Int
  private var random: AnyRandomNumberGenerator
  private var observations: [Key: Observation] = [:]
  /// Alarms by deadline, possibly including outdated ones.
  private var alarms = DeadlineHeap<KeyAlarm>()
  /// The keys that wait for a slot, possibly including void places.
  private var queue = FIFO<Place>()
  /// The number of places in ``queue`` that aren't void.
  private var waitingCount = 0
  private var usedSlotCount = 0
  /// The deadlines at which slots are released, possibly including void ones.
  private var slotDeadlines = DeadlineHeap<Place>()
  private var lastNumber: UInt64 = 0
  private var isActive = true
  private var isOnline = true
  /// The time at which all keys are requested, because the app has become active or the network available.
  private var resumption: Duration?

  /// - Parameters:
  ///   - slotCount: The maximum number of requests in progress, not counting those that have exceeded their time limit.
  ///   - random: The source of randomness for the delays.
  init(slotCount: Int, random: any RandomNumberGenerator & Sendable) {
    self.slotCount = slotCount
    self.random = AnyRandomNumberGenerator(random)
  }

  /// The numbers of elements that are kept, including outdated ones.
  var storedCounts: (alarms: Int, places: Int, slots: Int) {
    (alarms.items.count, queue.count, slotDeadlines.items.count)
  }

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
    var observation =
      observations[key]
      ?? Observation(number: makeNumber(), lastLoad: lastLoad ?? now, intervalVariation: randomFraction())
    let isNewObservation = observations[key] == nil || observation.hasStopped
    let isFirstObserver = !observation.isObserved
    observation.hasStopped = false
    observation.schedules.insert(schedule)
    observations[key] = observation
    setAlarm(of: key)
    if isFirstObserver, isNewObservation || observation.hasMissedRequest { requestReloadOrRefresh(key, at: now) }
    return startWaiting(at: now)
  }

  /// Records that the last of the observers with this key and this schedule is gone.
  mutating func end(_ key: Key, _ schedule: LoadingSchedule, at now: Duration) {
    guard observations[key]?.schedules.remove(schedule) != nil else { return }
    guard let observation = observations[key], !observation.isObserved else { return setAlarm(of: key) }
    miss(key)
    let number = silenceAlarm(of: key)
    insert(KeyAlarm(key: key, number: number, purpose: .stop), deadline: now + schedule.stopTimeout)
  }

  /// Records that the value of a key was fetched, regardless of which call did so, or that a request that this state
  /// machine returned has failed.
  mutating func recordLoad(of key: Key, at now: Duration) {
    guard let observation = observations[key] else { return }
    let intervalVariation = randomFraction()
    observations[key]?.lastLoad = now
    observations[key]?.intervalVariation = intervalVariation
    // The call has made the reload that still waits. The value may have become stale since.
    if observation.waiting != nil { observations[key]?.waiting?.request = .refresh(key) }
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
  ///   - now: The present time.
  mutating func endRequest(
    _ endedRequest: Request, _ result: RequestResult, isStillDue: Bool, at now: Duration
  ) -> [Request] {
    let key = endedRequest.key
    guard let observation = observations[key], observation.isFetching else { return [] }
    if observation.slotNumber != nil { usedSlotCount -= 1 }
    if observation.hasStopped {
      observations[key] = nil
      return startWaiting(at: now)
    }
    observations[key]?.isFetching = false
    observations[key]?.slotNumber = nil
    observations[key]?.newRequest = nil
    if observation.isObserved { setAlarm(of: key) }
    // A fetched value is new enough for the request that became due meanwhile, unless `isStillDue` says otherwise.
    let due = [isStillDue ? endedRequest : nil, result == .fetched ? nil : observation.newRequest].compactMap(\.self)
    if !due.isEmpty {
      // If the request didn't fail, the value was fetched or found fresh, so a refresh suffices, even if a reload is
      // due.
      request(result == .failed && due.contains(.reload(key)) ? .reload(key) : .refresh(key))
    }
    return startWaiting(at: now)
  }

  // MARK: - Requests

  /// Returns the requests that are due, and ends the observations whose stop timeout has passed.
  mutating func takeDue(at now: Duration) -> [Request] {
    if let resumption, resumption <= now {
      self.resumption = nil
      for key in keysInOrder { requestReloadOrRefresh(key, at: now) }
    }
    while let first = alarms.first, first.deadline <= now || !isValid(first.element) {
      _ = alarms.removeFirst()
      guard isValid(first.element) else { continue }
      switch first.element.purpose {
      case .stop: stop(first.element.key)
      // The next alarm is set when this fetch has ended. At the end of the delay, all keys are requested anyway.
      case .interval: if resumption == nil { request(.reload(first.element.key)) }
      }
    }
    return startWaiting(at: now)
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
  var deadline: Duration? {
    // The deadline of a slot matters only if a request waits for the slot.
    let slotDeadline = waitingCount > 0 ? slotDeadlines.first?.deadline : nil
    var deadline = resumption
    if let alarm = alarms.first?.deadline { deadline = min(deadline ?? alarm, alarm) }
    if let slotDeadline { deadline = min(deadline ?? slotDeadline, slotDeadline) }
    return deadline
  }

  /// Records that the app has become active or inactive.
  mutating func setActive(_ isActive: Bool, at now: Duration) -> [Request] {
    let couldFetch = canFetch
    self.isActive = isActive
    return resumeOrPause(couldFetch, maximumDelay: Self.maximumActivationDelay, at: now)
  }

  /// Records that the network has become available or unavailable.
  ///
  /// - Parameters:
  ///   - isOnline: Whether the network is available.
  ///   - isDelayed: Whether the fetches are delayed, because other devices may have noticed the network now too.
  ///   - now: The present time.
  mutating func setOnline(_ isOnline: Bool, isDelayed: Bool = true, at now: Duration) -> [Request] {
    let couldFetch = canFetch
    self.isOnline = isOnline
    return resumeOrPause(couldFetch, maximumDelay: isDelayed ? Self.maximumReconnectionDelay : .zero, at: now)
  }

  /// Requests all keys after a random delay if something can be fetched again, or records that the waiting requests are
  /// missed if nothing can be fetched any more.
  private mutating func resumeOrPause(
    _ couldFetch: Bool, maximumDelay: Duration, at now: Duration
  ) -> [Request] {
    if canFetch == couldFetch { return [] }
    guard canFetch else {
      resumption = nil
      for place in queue.elements where isWaiting(place) { miss(place.key) }
      queue = FIFO()
      return []
    }
    resumption = now + maximumDelay * randomFraction()
    return takeDue(at: now)
  }

  /// Records that keys have become stale.
  mutating func invalidate(_ selection: KeySelection<Key>, at now: Duration) -> [Request] {
    if case .key(let key) = selection {
      request(.refresh(key))
    } else {
      for key in keysInOrder where selection.contains(key) { request(.refresh(key)) }
    }
    return startWaiting(at: now)
  }

  /// Requests a reload if the interval of a key has passed, and a refresh otherwise.
  private mutating func requestReloadOrRefresh(_ key: Key, at now: Duration) {
    guard let observation = observations[key] else { return }
    let isReloadDue = observation.interval.map { observation.lastLoad + $0 <= now } ?? false
    // The key's alarm, if any, is due soon. If nothing can be fetched now, the alarm would only miss the same reload.
    if isReloadDue { silenceAlarm(of: key) }
    request(isReloadDue ? .reload(key) : .refresh(key))
  }

  private var keysInOrder: [Key] { observations.sorted { $0.value.number < $1.value.number }.map(\.key) }

  /// Records that a request is due: it waits for a slot, it follows the one in progress, or it is missed.
  private mutating func request(_ request: Request) {
    let key = request.key
    guard let observation = observations[key] else { return }
    let canBeMade = canFetch && observation.isObserved
    observations[key]?.hasMissedRequest = !canBeMade
    guard canBeMade else { return }
    if observation.isFetching {
      // Made after the request in progress, unless that one fetches the value.
      if observation.newRequest != .reload(key) { observations[key]?.newRequest = request }
    } else if let waiting = observation.waiting {
      if waiting.request != .reload(key) { observations[key]?.waiting?.request = request }
    } else {
      // The next alarm is set when the request has ended.
      silenceAlarm(of: key)
      let place = Place(key: key, number: makeNumber())
      observations[key]?.waiting = (request, place.number)
      append(place)
    }
  }

  // MARK: - Slots

  private func isWaiting(_ place: Place) -> Bool { observations[place.key]?.waiting?.number == place.number }

  private func hasSlot(_ place: Place) -> Bool { observations[place.key]?.slotNumber == place.number }

  private mutating func append(_ place: Place) {
    waitingCount += 1
    // Removes void places before there are too many of them.
    if queue.count > 2 * waitingCount + 32 { queue = FIFO(queue.elements.filter { isWaiting($0) }) }
    queue.append(place)
  }

  /// Records that the waiting request of a key isn't made, because nothing can be fetched for the key any more.
  private mutating func miss(_ key: Key) {
    guard observations[key]?.waiting != nil else { return }
    observations[key]?.waiting = nil
    observations[key]?.hasMissedRequest = true
    waitingCount -= 1
  }

  /// Returns the waiting requests that get a slot now.
  private mutating func startWaiting(at now: Duration) -> [Request] {
    while let first = slotDeadlines.first, first.deadline <= now || !hasSlot(first.element) {
      _ = slotDeadlines.removeFirst()
      guard hasSlot(first.element) else { continue }
      observations[first.element.key]?.slotNumber = nil
      usedSlotCount -= 1
    }
    var requests: [Request] = []
    while usedSlotCount < slotCount, let place = queue.removeFirst() {
      guard isWaiting(place), let request = observations[place.key]?.waiting?.request else { continue }
      observations[place.key]?.waiting = nil
      observations[place.key]?.isFetching = true
      observations[place.key]?.slotNumber = place.number
      (waitingCount, usedSlotCount) = (waitingCount - 1, usedSlotCount + 1)
      insertSlotDeadline(of: place, now + Self.slotTimeout)
      requests.append(request)
    }
    return requests
  }

  private mutating func insertSlotDeadline(of place: Place, _ deadline: Duration) {
    if slotDeadlines.items.count > 2 * usedSlotCount + 32 { slotDeadlines = slotDeadlines.filter { hasSlot($0) } }
    slotDeadlines.insert(place, deadline: deadline)
  }

  /// Returns a random number from 0 up to 1.
  private mutating func randomFraction() -> Double { Double.random(in: 0..<1, using: &random) }

  // MARK: - Alarms

  private func isValid(_ alarm: KeyAlarm) -> Bool { observations[alarm.key]?.alarmNumber == alarm.number }

  /// Replaces the alarm of an observed key.
  ///
  /// Sets no new one while a request waits or is in progress, or if no schedule has an interval.
  private mutating func setAlarm(of key: Key) {
    let number = silenceAlarm(of: key)
    guard let observation = observations[key], !observation.isFetching, observation.waiting == nil,
      let interval = observation.interval
    else { return }
    let deadline =
      observation.lastLoad + interval + interval * (Self.maximumIntervalVariation * observation.intervalVariation)
    insert(KeyAlarm(key: key, number: number, purpose: .interval), deadline: deadline)
  }

  private mutating func insert(_ alarm: KeyAlarm, deadline: Duration) {
    // Removes outdated alarms before there are too many of them.
    if alarms.items.count > 2 * observations.count + 32 { alarms = alarms.filter { isValid($0) } }
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
