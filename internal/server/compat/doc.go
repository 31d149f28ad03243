// Package compat speaks the HTTP protocols of two older delay queues, so that their clients work unchanged:
//
//	POST /compat/topics                  {"command":"add"|"pop"|"finish"|"delete", …}, times in seconds
//	POST /o/add                          {"topic","id","delay","ttr","body"}, times in milliseconds
//	GET  /o/get?topic=T                  take a job that is ready
//	GET  /o/complete?topic=T&id=I        report it done
//
// A job is a task: its topic is the tag, its id the key. Every answer is {"success","error","id","value"}. Its status
// is 200, unless it concerns the request as such (its size, its method, its sender), or the service is unavailable
// (503). docs/service.md describes what the protocols leave open.
package compat
