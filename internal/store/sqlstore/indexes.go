package sqlstore

import "slices"

// The indexes that statements enter by.
const (
	primary    = "PRIMARY"
	dueKey     = "delay_task_message_due"
	activeKey  = "delay_task_message_active_key"
	lookKey    = "delay_task_schedule_look"
	nameKey    = "delay_task_schedule_name"
	outcomeKey = "delay_task_schedule_run_outcome"
	actionKey  = "delay_task_audit_action"
)

// planned is a statement, and the index that it must enter its table by.
type planned struct {
	name  string
	query string
	args  []any
	key   string
}

// Index is an index of the schema, besides the primary keys.
type Index struct {
	Name, Table string
	Columns     string // between commas
	Unique      bool
	order       string // after the columns
}

// schemaIndexes lists the indexes of both kinds of database, serverIndexes the indexes that only servers have.
var (
	schemaIndexes = []Index{
		{Name: dueKey, Table: table, Columns: "tag, status, due_time"},
		{Name: "delay_task_message_expected", Table: table, Columns: "expected_time"},
		{Name: "delay_task_request_created", Table: requestTable, Columns: "create_time"},
		{Name: "delay_task_session_expires", Table: sessionTable, Columns: "expire_time"},
		{Name: actionKey, Table: auditTable, Columns: "action, id"},
		{Name: lookKey, Table: scheduleTable, Columns: "look_time, id"},
		{Name: nameKey, Table: scheduleTable, Columns: "name", Unique: true},
		{Name: outcomeKey, Table: runTable, Columns: "outcome, schedule_id"},
	}
	serverIndexes = []Index{
		{Name: activeKey, Table: table, Columns: "active_key", Unique: true, order: " DESC"},
		{Name: "delay_task_token_hash", Table: tokenTable, Columns: "hash", Unique: true},
		{Name: "delay_task_worker_address", Table: workerTable, Columns: "app, address_hash", Unique: true},
	}
)

// Needed reports whether statements fail without the index, and are not just slow.
func (x Index) Needed() bool {
	return slices.Contains([]string{dueKey, activeKey, lookKey, nameKey, outcomeKey, actionKey}, x.Name)
}
