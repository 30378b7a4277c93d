#include <sqlite3.h>

/// Disables triggers for the statements of a connection.
///
/// Swift doesn't import `sqlite3_db_config`, because it has a variable number of parameters.
static inline int csqlite_disable_triggers(sqlite3 *connection) {
  return sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
}

/// Keeps a connection from moving the log into the database and from removing the log when it is closed.
static inline int csqlite_keep_log(sqlite3 *connection) {
  return sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}
