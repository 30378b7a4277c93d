"""Deliberate defects of Sources/DataStore that the tests must detect."""

from mutant import mutants_of

mutant = mutants_of("DataStore")

JOURNAL = "Backends/File/JournalPerformer.swift"
FOLDER = "Backends/File/StoreFolder.swift"
BACKEND = "Backends/File/FileBackend.swift"
LOCKS = "FileSystem/FileSystem+Locks.swift"
COMMIT = "Store/PendingCommit.swift"
BATCH = "Store/StoreBatch.swift"
TOPIC_STATE = "Store/TopicState.swift"
STORE = "Store/BackedStore.swift"
CONTENTS = "Store/StoreContents.swift"
CHECKER = "Store/ChangeChecker.swift"
WATCH_STATE = "Store/WatchState.swift"
HUB = "FileSystem/FolderHub.swift"
ENVELOPE = "Values/Envelope.swift"
PARTS = "Values/ValueFormat.swift"

MUTANTS = [
    # Commits
    mutant(
        "interrupted-commit-dropped",
        "a commit whose journal is in force is finished by the next process",
        (
            FOLDER,
            "      if try performer.isComplete(in: descriptor) {\n",
            "      if try performer.isComplete(in: descriptor), journal.replacements.isEmpty {\n",
        ),
    ),
    mutant(
        "journal-removed-before-its-renames",
        "a commit is all or nothing at any instant",
        (
            JOURNAL,
            "    for replacement in journal.replacements {\n      let existed",
            "    try fileSystem.unlink(CommitJournal.fileName, in: folder)\n"
            "    for replacement in journal.replacements {\n      let existed",
        ),
        (
            JOURNAL,
            "    // before that, finishing the journal again changes no acknowledged value.\n"
            "    try fileSystem.unlink(CommitJournal.fileName, in: folder)\n",
            "",
        ),
    ),
    mutant(
        "absence-not-required",
        "a commit fails if a precondition that nothing is stored doesn't hold",
        (
            BATCH,
            "    case .tag(let required): required == tag\n",
            "    case .tag(let required): required == tag || required == nil\n",
        ),
    ),
    mutant(
        "folder-lock-shared",
        "no other process changes values between the reads of a commit and its end",
        (
            LOCKS,
            '        try perform("flock", folder.path) { flock(number, LOCK_EX | LOCK_NB) }\n',
            '        try perform("flock", folder.path) { flock(number, LOCK_SH | LOCK_NB) }\n',
        ),
    ),
    # Durability
    mutant(
        "saved-bytes-not-synchronized",
        "the bytes of a save survive a loss of power",
        (FOLDER, "        try fileSystem.synchronize(file)\n", ""),
    ),
    mutant(
        "rename-not-synchronized",
        "a save survives a loss of power once it has returned",
        (
            FOLDER,
            "    try fileSystem.rename(staged.name, to: fileName, in: descriptor)\n"
            "    do throws(SystemError) {\n"
            "      try fileSystem.synchronize(descriptor)\n"
            "    } catch {\n"
            "      try undoChange",
            "    try fileSystem.rename(staged.name, to: fileName, in: descriptor)\n"
            "    do throws(SystemError) {\n"
            "    } catch {\n"
            "      try undoChange",
        ),
    ),
    mutant(
        "journal-not-synchronized",
        "a commit of several values survives a loss of power once it has returned",
        (
            FOLDER,
            "      // This makes the names of the staged files and of the journal durable, and so the commit.\n"
            "      try fileSystem.synchronize(descriptor)\n",
            "",
        ),
    ),
    # Corruption
    mutant(
        "checksum-not-verified",
        "bytes with a wrong checksum aren't decoded",
        (
            ENVELOPE,
            "      self = bytes.prefix(Self.prefixLength).elementsEqual(expected.utf8) ? .right : .wrong\n",
            "      self = bytes.count < expected.utf8.count ? .wrong : .right\n",
        ),
    ),
    mutant(
        "corrupt-bytes-discarded",
        "bytes that can't be decoded are quarantined and not discarded",
        (
            FOLDER,
            "    guard hasNoLocks else { return path }\n",
            "    guard hasNoLocks else {\n"
            "      discard(String(path.dropFirst(descriptor.path.count + 1)))\n"
            "      return path\n"
            "    }\n",
        ),
    ),
    # Changes
    mutant(
        "own-save-sent-twice",
        "a subscriber receives each change once",
        (
            TOPIC_STATE,
            "  mutating func recordSave(_ edition: Edition, _ id: String?, revision: UInt64) {\n"
            "    known[id] = .value(edition, revision: revision)\n",
            "  mutating func recordSave(_ edition: Edition, _ id: String?, revision: UInt64) {\n"
            "    if known[id] == nil { known[id] = .value(edition, revision: revision) }\n",
        ),
    ),
    mutant(
        "external-save-sent-twice",
        "a subscriber receives each change once",
        (
            TOPIC_STATE,
            "    case (.value(let edition), _):\n      known[id] = .value(edition, revision: revision)\n",
            "    case (.value, _):\n",
        ),
    ),
    mutant(
        "external-save-of-new-id-not-sent",
        "a subscriber to a collection receives a value that another process adds",
        (
            TOPIC_STATE,
            "    case (.value(let edition), nil) where !isListed:\n",
            "    case (.value(let edition), nil):\n",
        ),
    ),
    mutant(
        "returned-folder-not-checked",
        "a subscriber receives the value of a folder that returns while a check finds none",
        (
            BACKEND,
            "      // The requested check meets the same error, and reports it.\n    }\n    wake?()\n",
            "      // The requested check meets the same error, and reports it.\n    }\n",
        ),
    ),
    # Locks
    mutant(
        "name-lock-shared",
        "a lock excludes every other lock on the same name",
        (
            LOCKS,
            "    switch try tryToLock(file) {\n    case false: return .held",
            "    let number = file.number\n"
            '    try perform("flock", file.path) { flock(number, LOCK_SH | LOCK_NB) }\n'
            "    switch Bool?.some(true) {\n    case false: return .held",
        ),
    ),
    mutant(
        "lock-not-released-with-its-holder",
        "a lock is released with its object",
        ("Store/StoreLock.swift", "  deinit {\n    unlock()\n", "  deinit {\n"),
    ),
    # Values in parts
    mutant(
        "changed-part-not-written",
        "a save of a value in parts writes every changed part",
        (
            PARTS,
            "        newParts.append((id, bytes))\n",
            "        if base == nil { newParts.append((id, bytes)) }\n",
        ),
    ),
    mutant(
        "replaced-part-kept",
        "a save over another store's parts stores exactly what it saves",
        (
            COMMIT,
            "      guard let keptPartIDs = written?.keptPartIDs, keptPartIDs.isSubset(of: storedPartIDs) else { return .retry }\n",
            "      guard let keptPartIDs = written?.keptPartIDs else { return .retry }\n",
        ),
    ),
    # Suspension
    mutant(
        "suspension-overtakes-saves",
        "suspend() waits for the calls in progress",
        (
            STORE,
            "    commits.performPending()\n    checker.suspend()\n",
            "    checker.suspend()\n",
        ),
    ),
    mutant(
        "suspended-store-stays-open",
        "a call of a suspended store closes what it has opened",
        (
            CONTENTS,
            "    defer { if closesBackend { closeBackend() } else { sendBackendEvents() } }\n",
            "    defer { sendBackendEvents() }\n",
        ),
    ),
    mutant(
        "suspended-store-checks",
        "a suspended store opens nothing because of a report of its former watch",
        (
            CHECKER,
            "    if watch.isSuspended { return }\n",
            "",
        ),
    ),
    mutant(
        "suspensions-not-counted",
        "a store that is suspended twice is resumed by two calls",
        (
            WATCH_STATE,
            "    suspensionCount -= 1\n",
            "    suspensionCount = 0\n",
        ),
    ),
    mutant(
        "changes-of-suspension-missed",
        "observers receive what has changed during a suspension, even if the watch can't begin",
        (
            WATCH_STATE,
            "    hasUnknownChanges = true\n    return !isSuspended\n",
            "    return !isSuspended\n",
        ),
    ),
    mutant(
        "watch-closed-later",
        "once suspend() has returned, the store has no descriptor",
        (
            HUB,
            "    closings.wait()\n",
            "    _ = closings\n",
        ),
    ),
    # Feeds
    mutant(
        "feed-tears-commits",
        "a feed receives a commit of another store as one element",
        (
            CHECKER,
            "    if slot.topic.hasUnsent, slot.topic.isCollectionObserved || slot.topic.isFed { checkForChanges() }\n",
            "    if slot.topic.hasUnsent, slot.topic.isCollectionObserved { checkForChanges() }\n",
        ),
    ),
    mutant(
        "feed-flushed-by-topic",
        "a commit is one element of a feed, however many collections it changes",
        (
            CONTENTS,
            "      topic.flush { change, feed in if feed.collect(change) { feeds.append(feed) } }\n",
            "      topic.flush { change, feed in if feed.collect(change) { feeds.append(feed) } }\n"
            "      for feed in feeds { feed.sendCollected(revision: revision, ownTag: ownTag) }\n"
            "      feeds = []\n",
        ),
    ),
    mutant(
        "feed-catches-up-with-nothing",
        "after a feed has caught up, it has each commit that another store has made before",
        (CHECKER, "    publish(try readChanges(takesReport: watch.isWatching, mayRepeat: true))\n", ""),
    ),
]
