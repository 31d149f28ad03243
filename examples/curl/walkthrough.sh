#!/bin/sh
# A task from its save to its end, by hand: ./walkthrough.sh, with the service running.
set -eu
base=${DELAYTASK_URL:-http://127.0.0.1:8080}

call() { # method, path, body
	curl --fail-with-body --silent --show-error --max-time 60 --request "$1" \
		${DELAYTASK_TOKEN:+--header "Authorization: Bearer $DELAYTASK_TOKEN"} \
		${3:+--header 'Content-Type: application/json' --data "$3"} "$base$2"
}
field() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'; } # of the JSON that is read

echo '1. Save a task that is due in one second.'
saved=$(call POST /v1/tasks '{"tag": "walkthrough", "body": {"name": "curl"}, "delay": "1s"}')
echo "$saved"

echo '2. Why does it not run?'
call GET "/v1/tasks/$(echo "$saved" | field id)/explain"

echo '3. Wait for it: the answer comes the moment it is due.'
popped=$(call POST '/v1/tags/walkthrough/pop?wait=30s')
echo "$popped"
id=$(echo "$popped" | field id) token=$(echo "$popped" | field token)

echo '4. The work takes longer: keep the lease.'
call POST "/v1/tasks/$id/touch" '{"token": "'"$token"'", "ttr": "1m"}'

echo '5. It is done.'
call POST "/v1/tasks/$id/finish" '{"token": "'"$token"'"}'
call GET "/v1/tasks/$id"
