package store

import (
	"reflect"
	"strings"
	"testing"
)

// roles are the statements of each role: the field of a text, and the names it is sent by.
var roles = map[string]string{
	"inbox": `insertEvent insert_event, insertEncoded insert_event_encoded, insertJob insert_jobs, insertJobIf insert_jobs_if,
		dropBare drop_bare_event, stored stored, deliveredAs delivered_as, keyedAs keyed_as`,
	"take": `claim claim, claimPassed claim_passed, claimed claimed, claimedSteps claimed_steps, aboveTaken above_taken,
		admit admit, admitProbe admit_probe, charge charge, refund refund, bases bases`,
	"worklist": `due due, insertAttempt insert_attempts, insertEventIf insert_events_if, settle settle, settled settled,
		release release, recover recover`,
	"gates": `insertGate insert_gates, gates gates, succeed succeed, fail fail, endProbe end_probe, closeGate close_gates,
		waiting waiting_lanes, markStray mark_strays, setBack set_back, clearStray clear_strays`,
	"pull": `ack ack, extend extend, held held, lapsed lapsed, peek peek, deadLetters dead_letters, tally tally, tallyDead tally_dead,
		drainWaiting drain_waiting, drainDead drain_dead, drainJobs drain_jobs, deleteAttempts drain_attempts`,
	"upkeep": `retryOne retry, retryEarly retry_early, retryLane retry, retryAll retry, countDead count_dead, countDeadLane count_dead,
		forgetStrays forget_strays, answerPing ping`,
	"replay": `holdEvents hold_events, replayed replayed`,
	"turns":  `insertTurn insert_turn, turn turn, whose whose_turn`,
	"purge": `overJobs over_jobs, overRuns over_runs, overEvents over_events, deleteJob purge_jobs, deleteAttempts purge_attempts,
		deleteEvent purge_events, deleteRun purge_runs, deleteSteps purge_steps, deleteTexts purge_texts, deleteHistory purge_history,
		deleteCallbacks purge_callbacks,
		pickAttempts pick_attempts, deleteAttempt delete_attempts, pickSteps pick_steps, deleteStep delete_steps,
		pickTexts pick_texts, deleteText delete_texts, pickHistory pick_history, deleteEntry delete_history,
		pickCallbacks pick_callbacks, deleteCallback delete_callbacks`,
	"sweep": `sliceAttempts slice_attempts, sliceSteps slice_steps, sliceTexts slice_texts, sliceHistory slice_history,
		sliceCallbacks slice_callbacks, idleGates idle_gates, forgetGates forget_gates`,
	"ledger": `event event, job job, attempts attempts, depth depth, finished finished, over over, buried buried, sourcesOf sources_of,
		lanesWaiting jobs_waiting_lanes, lanesDead jobs_dead_lanes, lanesDone jobs_done_lanes, readJobs read_jobs`,
	"archive":  `readEvents read_events, jobsOf jobs_of, attemptsOf attempts_of`,
	"calendar": `marks marks, insertMark insert_mark, moveMark move_mark`,
	"runs": `insertDefinition insert_definitions, insertRun insert_runs, insertFirst insert_first_steps, definition definition,
		situations situations, surveyOpen survey_open, surveyFailed survey_failed, surveyIDs survey_ids, surveyLeaves survey_leaves,
		surveyPaths survey_paths, textsOf texts_of, awaited awaited`,
	"transit": `lockRuns lock_runs, insertHistory insert_history, moreHistory more_history, insertStepAttempts insert_step_attempts,
		insertRise insert_rises, insertTexts insert_texts, insertSteps insert_steps, changeSteps change_steps, holdSteps hold_steps,
		insertStepJobs insert_step_jobs, changeJobs change_jobs, insertTokens insert_tokens, disarm disarm, moveRun move_runs, heldBy held_by`,
	"chronicle": `run run, history history, stepIDs step_ids, stepSizes step_sizes, readSteps read_steps`,
}

// openings are fields of texts that are not whole: a listing goes on from them.
var openings = []string{"jobs", "runs", "jobsNear", "waitingIDs", "deadIDs", "doneIDs"}

func fixedStatements(t *testing.T, d Dialect) map[string][]Stmt {
	all, named := reflect.ValueOf(newStatements(d)), map[string]bool{}
	files := map[string][]Stmt{}
	for role, list := range roles {
		for _, entry := range strings.Split(list, ",") {
			field, name, _ := strings.Cut(strings.TrimSpace(entry), " ")
			v := all.FieldByName(field)
			if !v.IsValid() {
				t.Fatalf("%s: no statement %s", role, field)
			}
			named[field] = true
			if v.String() != "" {
				files[role] = append(files[role], Stmt{Name: name, SQL: v.String()})
			}
		}
	}
	for _, field := range openings {
		named[field] = true
	}
	for _, f := range reflect.VisibleFields(all.Type()) {
		if f.Type.Kind() == reflect.String && f.Index[0] >= 0 && len(f.Index) <= 2 && f.Type != reflect.TypeFor[eventListing]() && !named[f.Name] {
			t.Errorf("%s is of no role", f.Name)
		}
	}
	return files
}
