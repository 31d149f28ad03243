package sqlstore

import "slices"

const (
	table         = "delay_task_message"
	nodeTable     = "delay_task_node"
	processTable  = "delay_task_process"
	tagTable      = "delay_task_tag"
	scheduleTable = "delay_task_schedule"
	runTable      = "delay_task_schedule_run"
	rollupTable   = "delay_task_rollup"
	auditTable    = "delay_task_audit"
	requestTable  = "delay_task_request"
	tokenTable    = "delay_task_token"
	sessionTable  = "delay_task_session"
	workerTable   = "delay_task_worker"
)

// The tables of the schema, in the order of the checks.
var (
	tables        = []string{table, nodeTable, processTable, tagTable, scheduleTable, runTable, rollupTable, auditTable}
	serviceTables = []string{requestTable, tokenTable, workerTable, sessionTable}
)

// Tables returns the names of all tables of the schema.
func Tables() []string { return slices.Concat(tables, serviceTables) }
