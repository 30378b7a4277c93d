#include <sqlite3.h>

/// Disables triggers for the statements of a connection.
///
/// Swift doesn't import `sqlite3_db_config`, because it has a variable number of parameters.
static inline int csqlite_disable_triggers(sqlite3 *connection) {
  return sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
}
