package shop;

import com.netflix.conductor.client.events.listeners.TaskClientListener;
import com.netflix.conductor.client.events.listeners.TaskRunnerEventsListener;
import com.netflix.conductor.client.events.listeners.WorkflowClientListener;
import com.netflix.conductor.client.http.ConductorClient;
import com.netflix.conductor.client.http.EventClient;
import com.netflix.conductor.client.http.MetadataClient;
import com.netflix.conductor.client.http.TaskClient;
import com.netflix.conductor.client.http.WorkflowClient;
import com.netflix.conductor.common.metadata.SchemaDef;
import com.netflix.conductor.common.metadata.events.EventHandler;
import com.netflix.conductor.common.metadata.tasks.Task;
import com.netflix.conductor.common.metadata.tasks.TaskDef;
import com.netflix.conductor.common.metadata.tasks.TaskResult;
import com.netflix.conductor.common.metadata.workflow.RerunWorkflowRequest;
import com.netflix.conductor.common.metadata.workflow.StartWorkflowRequest;
import com.netflix.conductor.common.metadata.workflow.UpgradeWorkflowRequest;
import com.netflix.conductor.common.metadata.workflow.WorkflowDef;
import com.netflix.conductor.common.metadata.workflow.WorkflowTask;
import com.netflix.conductor.common.run.Workflow;
import com.netflix.conductor.common.run.WorkflowTestRequest;
import io.orkes.conductor.client.ApiClient;
import io.orkes.conductor.client.http.*;
import io.orkes.conductor.client.model.*;
import io.orkes.conductor.client.model.integration.Category;
import io.orkes.conductor.client.model.integration.Integration;
import io.orkes.conductor.client.model.integration.IntegrationApiUpdate;
import io.orkes.conductor.client.model.integration.IntegrationUpdate;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.conductoross.conductor.client.FileClient;
import org.conductoross.conductor.client.model.ai.PromptTemplate;
import org.conductoross.conductor.common.model.Consistency;
import org.conductoross.conductor.common.model.ReturnStrategy;
import org.conductoross.conductor.common.model.WorkflowStateUpdate;

/** Call every method of the Java SDK's clients once at least, and print what came of it. */
public final class EveryMethod {
    private static final Calls calls = new Calls();
    private static final Map<String, Object> SIZE = Map.of("size", 2);

    public static void main(String[] args) throws Exception {
        String url = System.getenv("CONDUCTOR_SERVER_URL");
        ApiClient client = new ApiClient(url, System.getenv("CONDUCTOR_AUTH_KEY"), System.getenv("CONDUCTOR_AUTH_SECRET"));
        metadata(client);
        Suit.serve(client, calls);
        workflows(client);
        bulk(client);
        executions(client);
        tasks(client);
        events(client);
        schedules(client);
        secrets(client);
        people(client);
        files(client);
        services(client);
        models(client);
        prompts(client);
        calls.print(List.of(
            WorkflowClient.class, TaskClient.class, MetadataClient.class, EventClient.class, OrkesMetadataClient.class,
            OrkesEventClient.class, OrkesSchedulerClient.class, OrkesSecretClient.class, OrkesSchemaClient.class,
            OrkesEnvironmentClient.class, OrkesAuthorizationClient.class, OrkesTokenClient.class,
            OrkesServiceRegistryClient.class, FileClient.class, OrkesIntegrationClient.class, OrkesPromptClient.class,
            // Agents: nothing calls it.
            OrkesAgentClient.class));
        client.shutdown();
        System.exit(0);
    }

    private static WorkflowTask step(String type, String ref) {
        WorkflowTask step = new WorkflowTask();
        step.setName(ref);
        step.setTaskReferenceName(ref);
        step.setType(type);
        step.setInputParameters(new HashMap<>(Map.of("size", "${workflow.input.size}")));
        return step;
    }

    private static WorkflowDef order(String name, int version, WorkflowTask... steps) {
        WorkflowDef order = new WorkflowDef();
        order.setName(name);
        order.setVersion(version);
        order.setOwnerEmail("shop@example.com");
        order.setTimeoutSeconds(0);
        order.setTimeoutPolicy(WorkflowDef.TimeoutPolicy.ALERT_ONLY);
        order.setTasks(List.of(steps));
        return order;
    }

    private static TaskDef task(String name) {
        TaskDef task = new TaskDef(name);
        task.setOwnerEmail("shop@example.com");
        task.setRetryCount(0);
        return task;
    }

    private static StartWorkflowRequest start(String name) {
        return new StartWorkflowRequest().withName(name).withVersion(1).withInput(SIZE).withCorrelationId("A-1");
    }

    /** A listener that does nothing. */
    private static <T> T listener(Class<T> kind) {
        return kind.cast(java.lang.reflect.Proxy.newProxyInstance(kind.getClassLoader(), new Class<?>[] {kind},
            (self, method, given) -> method.getReturnType() == int.class ? (Object) 0 : null));
    }

    private static TagObject tag(String value) {
        TagObject tag = new TagObject();
        tag.setKey("team");
        tag.setValue(value);
        tag.setType(TagObject.TypeEnum.METADATA);
        return tag;
    }

    private static Tag plain(String value) {
        Tag tag = new Tag();
        tag.setKey("team");
        tag.setValue(value);
        return tag;
    }

    private static void metadata(ConductorClient client) {
        MetadataClient plain = new MetadataClient(client);
        calls.run("MetadataClient.setRootURI", () -> new MetadataClient(client).setRootURI(client.getBasePath()));
        calls.run("MetadataClient.registerTaskDefs", () -> plain.registerTaskDefs(List.of(task("cut"), task("sew"))));
        TaskDef changed = task("sew");
        changed.setRetryCount(5);
        calls.run("MetadataClient.updateTaskDef", () -> plain.updateTaskDef(changed));
        TaskDef shown = calls.get("MetadataClient.getTaskDef", () -> plain.getTaskDef("sew"));
        calls.check("MetadataClient.updateTaskDef", shown != null && shown.getRetryCount() == 5, shown);
        List<TaskDef> all = calls.get("MetadataClient.getAllTaskDefs", plain::getAllTaskDefs);
        calls.check("MetadataClient.getAllTaskDefs", all != null && all.size() == 2, all);
        calls.run("MetadataClient.registerWorkflowDef", () -> plain.registerWorkflowDef(order("coat", 1, step("SIMPLE", "cut"), step("SIMPLE", "sew"))));
        calls.run("MetadataClient.updateWorkflowDefs", () -> plain.updateWorkflowDefs(List.of(
            order("coat", 1, step("SIMPLE", "cut"), step("SIMPLE", "sew")), order("gone", 1, step("SIMPLE", "cut")),
            order("wait", 1, step("WAIT", "first"), step("WAIT", "second")), order("wait", 2, step("WAIT", "first"), step("WAIT", "second")))));
        WorkflowDef coat = calls.get("MetadataClient.getWorkflowDef", () -> plain.getWorkflowDef("coat", 1));
        calls.check("MetadataClient.getWorkflowDef", coat != null && coat.getTasks().size() == 2, coat);
        List<WorkflowDef> newest = calls.get("MetadataClient.getAllWorkflowsWithLatestVersions", plain::getAllWorkflowsWithLatestVersions);
        calls.check("MetadataClient.getAllWorkflowsWithLatestVersions", newest != null && newest.size() == 3, newest);
        calls.run("MetadataClient.unregisterWorkflowDef", () -> plain.unregisterWorkflowDef("gone", 1));
        plain.registerTaskDefs(List.of(task("gone")));
        calls.run("MetadataClient.unregisterTaskDef", () -> plain.unregisterTaskDef("gone"));

        OrkesMetadataClient orkes = new OrkesMetadataClient(client);
        String my = "OrkesMetadataClient.";
        calls.run(my + "setRootURI", () -> new OrkesMetadataClient(client).setRootURI(client.getBasePath()));
        calls.run(my + "registerTaskDefs", () -> orkes.registerTaskDefs(List.of(task("fold"))));
        calls.run(my + "updateTaskDef", () -> orkes.updateTaskDef(task("fold")));
        calls.get(my + "getTaskDef", () -> orkes.getTaskDef("fold"));
        calls.get(my + "getAllTaskDefs", orkes::getAllTaskDefs);
        calls.run(my + "registerWorkflowDef", () -> orkes.registerWorkflowDef(order("shirt", 1, step("SIMPLE", "cut"))));
        calls.run(my + "registerWorkflowDef", () -> orkes.registerWorkflowDef(order("shirt", 1, step("SIMPLE", "cut")), true));
        calls.run(my + "updateWorkflowDefs", () -> orkes.updateWorkflowDefs(List.of(order("shirt", 1, step("SIMPLE", "cut")))));
        calls.run(my + "updateWorkflowDefs", () -> orkes.updateWorkflowDefs(List.of(order("shirt", 1, step("SIMPLE", "cut"))), true));
        calls.get(my + "getWorkflowDef", () -> orkes.getWorkflowDef("shirt", 1));
        calls.get(my + "getWorkflowDefWithMetadata", () -> orkes.getWorkflowDefWithMetadata("shirt", 1));
        calls.get(my + "getAllWorkflowDefs", orkes::getAllWorkflowDefs);
        calls.get(my + "getAllWorkflowsWithLatestVersions", orkes::getAllWorkflowsWithLatestVersions);
        calls.run(my + "addTaskTag", () -> orkes.addTaskTag(tag("a"), "cut"));
        calls.run(my + "setTaskTags", () -> orkes.setTaskTags(List.of(tag("a"), tag("b")), "cut"));
        TagString old = new TagString();
        old.setKey("team");
        old.setValue("a");
        old.setType(TagString.TypeEnum.METADATA);
        calls.run(my + "deleteTaskTag", () -> orkes.deleteTaskTag(old, "cut"));
        List<TagObject> left = calls.get(my + "getTaskTags", () -> orkes.getTaskTags("cut"));
        calls.check(my + "getTaskTags", left != null && left.size() == 1, left);
        calls.run(my + "addWorkflowTag", () -> orkes.addWorkflowTag(tag("a"), "shirt"));
        orkes.addWorkflowTag(tag("b"), "shirt");
        calls.run(my + "deleteWorkflowTag", () -> orkes.deleteWorkflowTag(tag("a"), "shirt"));
        List<TagObject> kept = calls.get(my + "getWorkflowTags", () -> orkes.getWorkflowTags("shirt"));
        calls.check(my + "getWorkflowTags", kept != null && kept.size() == 1, kept);
        calls.run(my + "setWorkflowTags", () -> orkes.setWorkflowTags(List.of(tag("c"), tag("d")), "shirt"));
        calls.check(my + "setWorkflowTags", orkes.getWorkflowTags("shirt").size() == 2, "one tag is left");
        calls.get(my + "getTags", orkes::getTags);
        calls.run(my + "unregisterWorkflowDef", () -> orkes.unregisterWorkflowDef("shirt", 1));
        calls.run(my + "unregisterTaskDef", () -> orkes.unregisterTaskDef("fold"));

        OrkesSchemaClient schemas = new OrkesSchemaClient(client);
        calls.run("OrkesSchemaClient.saveSchema", () -> schemas.saveSchema(schema(1)));
        calls.run("OrkesSchemaClient.saveSchemas", () -> schemas.saveSchemas(List.of(schema(2), schema(3))));
        calls.get("OrkesSchemaClient.getAllSchemas", () -> schemas.getAllSchemas(false));
        SchemaDef newestSchema = calls.get("OrkesSchemaClient.getSchema", () -> schemas.getSchema("size"));
        calls.check("OrkesSchemaClient.getSchema", newestSchema != null && newestSchema.getVersion() == 3, newestSchema);
        calls.get("OrkesSchemaClient.getSchema", () -> schemas.getSchema("size", 1));
        calls.run("OrkesSchemaClient.deleteSchema", () -> schemas.deleteSchema("size", 1));
        calls.run("OrkesSchemaClient.deleteSchema", () -> schemas.deleteSchema("size"));
    }

    private static SchemaDef schema(int version) {
        SchemaDef schema = new SchemaDef();
        schema.setName("size");
        schema.setVersion(version);
        schema.setType(SchemaDef.Type.JSON);
        schema.setData(Map.of("type", "object"));
        return schema;
    }

    private static TaskResult done(Task task, Map<String, Object> output) {
        TaskResult result = new TaskResult(task);
        result.setStatus(TaskResult.Status.COMPLETED);
        result.getOutputData().putAll(output);
        return result;
    }

    private static void workflows(ConductorClient client) throws Exception {
        String my = "WorkflowClient.";
        WorkflowClient workflows = new WorkflowClient(client);
        TaskClient tasks = new TaskClient(client);
        calls.run(my + "setRootURI", () -> new WorkflowClient(client).setRootURI(client.getBasePath()));
        calls.run(my + "registerListener", () -> new WorkflowClient(client).registerListener(listener(WorkflowClientListener.class)));
        calls.run(my + "close", () -> new WorkflowClient(client).close());
        calls.run(my + "checkAndUploadToExternalStorage", () -> workflows.checkAndUploadToExternalStorage(start("wait")));
        String id = calls.get(my + "startWorkflow", () -> workflows.startWorkflow(start("wait")));
        Workflow run = calls.get(my + "getWorkflow", () -> workflows.getWorkflow(id, true));
        calls.check(my + "getWorkflow", run != null && "2".equals(String.valueOf(run.getInput().get("size"))), run);
        calls.run(my + "populateWorkflowOutput", () -> workflows.populateWorkflowOutput(run));
        calls.get(my + "getWorkflows", () -> workflows.getWorkflows("wait", "A-1", true, true));
        List<String> running = calls.get(my + "getRunningWorkflow", () -> workflows.getRunningWorkflow("wait", 1));
        calls.check(my + "getRunningWorkflow", running != null && running.equals(List.of(id)), running);
        long now = System.currentTimeMillis();
        calls.get(my + "getWorkflowsByTimePeriod", () -> workflows.getWorkflowsByTimePeriod("wait", 1, now - 60_000, now + 60_000));
        calls.get(my + "getWorkflowStatusSummary", () -> workflows.getWorkflowStatusSummary(id, true, true));
        calls.get(my + "getWorkflowsByNamesAndCorrelationIds", () -> workflows.getWorkflowsByNamesAndCorrelationIds(List.of("A-1"), List.of("wait"), true, true));
        calls.run(my + "runDecider", () -> workflows.runDecider(id));
        calls.run(my + "pauseWorkflow", () -> workflows.pauseWorkflow(id));
        calls.run(my + "resumeWorkflow", () -> workflows.resumeWorkflow(id));
        calls.run(my + "resetCallbacksForInProgressTasks", () -> workflows.resetCallbacksForInProgressTasks(id));
        Workflow changed = calls.get(my + "updateVariables", () -> workflows.updateVariables(id, Map.of("a", 1)));
        calls.check(my + "updateVariables", changed != null && changed.getVariables().containsKey("a"), changed);
        UpgradeWorkflowRequest upgrade = new UpgradeWorkflowRequest();
        upgrade.setName("wait");
        upgrade.setVersion(2);
        calls.run(my + "upgradeRunningWorkflow", () -> workflows.upgradeRunningWorkflow(id, upgrade));
        WorkflowStateUpdate state = new WorkflowStateUpdate();
        state.setVariables(Map.of("b", 2));
        calls.get(my + "updateWorkflow", () -> workflows.updateWorkflow(id, List.of("second"), 1, state));
        calls.run(my + "skipTaskFromWorkflow", () -> workflows.skipTaskFromWorkflow(id, "second"));
        calls.run(my + "terminateWorkflow", () -> workflows.terminateWorkflow(id, "enough"));
        calls.run(my + "retryLastFailedTask", () -> workflows.retryLastFailedTask(id));
        calls.run(my + "terminateWorkflowWithFailure", () -> workflows.terminateWorkflowWithFailure(id, "enough", false));
        calls.run(my + "retryLastFailedTask", () -> workflows.retryLastFailedTask(id, true));
        workflows.terminateWorkflow(id, "enough");
        calls.run(my + "restart", () -> workflows.restart(id, true));
        tasks.updateTask(id, "first", TaskResult.Status.COMPLETED, Map.of());
        tasks.updateTask(id, "second", TaskResult.Status.COMPLETED, Map.of());
        RerunWorkflowRequest again = new RerunWorkflowRequest();
        String second = workflows.getWorkflow(id, true).getTasks().get(1).getTaskId();
        again.setReRunFromTaskId(second);
        calls.get(my + "rerunWorkflow", () -> workflows.rerunWorkflow(id, again));
        String now2 = workflows.getWorkflow(id, true).getTasks().get(1).getTaskId();
        calls.check(my + "rerunWorkflow", second.equals(now2), now2);
        String query = "workflowId = '" + id + "'";
        calls.get(my + "search", () -> workflows.search(query));
        calls.get(my + "search", () -> workflows.search(0, 10, "startTime:DESC", "*", query));
        calls.get(my + "searchV2", () -> workflows.searchV2(query));
        var found = calls.get(my + "searchV2", () -> workflows.searchV2(0, 10, "startTime:DESC", "*", query));
        calls.check(my + "searchV2", found != null && found.getTotalHits() == 1, found);
        WorkflowTestRequest test = new WorkflowTestRequest();
        test.setName("coat");
        test.setVersion(1);
        test.setWorkflowDef(order("coat", 1, step("SIMPLE", "cut")));
        test.setTaskRefToMockOutput(Map.of("cut", List.of(new WorkflowTestRequest.TaskMock(TaskResult.Status.COMPLETED, Map.of("pieces", 4)))));
        Workflow tried = calls.get(my + "testWorkflow", () -> workflows.testWorkflow(test));
        calls.check(my + "testWorkflow", tried != null && tried.getStatus() == Workflow.WorkflowStatus.COMPLETED, tried);
        workflows.terminateWorkflow(id, "enough");
        calls.run(my + "deleteWorkflow", () -> workflows.deleteWorkflow(id, false));
        calls.run(my + "uploadCompletedWorkflows", workflows::uploadCompletedWorkflows);
    }

    private static void bulk(ConductorClient client) {
        String my = "WorkflowClient.";
        WorkflowClient workflows = new WorkflowClient(client);
        List<String> ids = List.of(workflows.startWorkflow(start("wait")), workflows.startWorkflow(start("wait")));
        for (String each : List.of("pauseWorkflows", "resumeWorkflow", "terminateWorkflows", "retryWorkflow", "terminateWorkflowsWithFailure", "restartWorkflow")) {
            var reply = calls.get(my + each, () -> switch (each) {
                case "pauseWorkflows" -> workflows.pauseWorkflows(ids);
                case "resumeWorkflow" -> workflows.resumeWorkflow(ids);
                case "terminateWorkflows" -> workflows.terminateWorkflows(ids, "enough");
                case "retryWorkflow" -> workflows.retryWorkflow(ids);
                case "terminateWorkflowsWithFailure" -> workflows.terminateWorkflowsWithFailure(ids, "enough", false);
                default -> workflows.restartWorkflow(ids, false);
            });
            calls.check(my + each, reply != null && reply.getBulkSuccessfulResults().size() == 2, reply == null ? null : reply.getBulkErrorResults());
        }
        workflows.pauseWorkflows(ids);
        calls.get(my + "resumeWorkflows", () -> workflows.resumeWorkflows(ids));
        workflows.terminateWorkflows(ids, "enough");
        calls.get(my + "retryWorkflows", () -> workflows.retryWorkflows(ids));
        workflows.terminateWorkflows(ids, "enough");
        calls.get(my + "restartWorkflows", () -> workflows.restartWorkflows(ids, false));
        workflows.terminateWorkflows(ids, "enough");
    }

    private static void executions(ConductorClient client) {
        String my = "WorkflowClient.";
        WorkflowClient workflows = new WorkflowClient(client);
        var run = calls.get(my + "executeWorkflow", () -> workflows.executeWorkflow(start("wait"), "first").get());
        calls.check(my + "executeWorkflow", run != null && run.getWorkflowId() != null, run);
        calls.get(my + "executeWorkflow", () -> workflows.executeWorkflow(start("wait"), "second", 1).get());
        calls.get(my + "executeWorkflow", () -> workflows.executeWorkflow(start("wait"), List.of("second"), 1).get());
        calls.get(my + "executeWorkflow", () -> workflows.executeWorkflow(start("wait"), "second", Duration.ofSeconds(15)));
        String all = my + "executeWorkflowWithReturnStrategy";
        calls.get(all, () -> workflows.executeWorkflowWithReturnStrategy(start("wait")).get());
        calls.get(all, () -> workflows.executeWorkflowWithReturnStrategy(start("wait"), ReturnStrategy.BLOCKING_TASK).get());
        calls.get(all, () -> workflows.executeWorkflowWithReturnStrategy(start("wait"), List.of("second"), 1, Consistency.DURABLE, ReturnStrategy.TARGET_WORKFLOW).get());
    }

    private static void tasks(ConductorClient client) throws Exception {
        String my = "TaskClient.";
        TaskClient tasks = new TaskClient(client);
        WorkflowClient workflows = new WorkflowClient(client);
        calls.run(my + "setRootURI", () -> new TaskClient(client).setRootURI(client.getBasePath()));
        calls.get(my + "getConductorClient", tasks::getConductorClient);
        calls.run(my + "registerListener", () -> new TaskClient(client).registerListener(listener(TaskClientListener.class)));
        calls.run(my + "registerTaskRunnerListener", () -> new TaskClient(client).registerTaskRunnerListener(listener(TaskRunnerEventsListener.class)));
        calls.run(my + "unregisterListeners", () -> new TaskClient(client).unregisterListeners());
        for (int count = 0; count < 6; count++) workflows.startWorkflow(start("coat"));
        Task task = calls.get(my + "pollTask", () -> tasks.pollTask("cut", "till", null));
        calls.check(my + "pollTask", task != null && task.getTaskId() != null, task);
        List<Task> batch = calls.get(my + "batchPollTasksByTaskType", () -> tasks.batchPollTasksByTaskType("cut", "till", 2, 100));
        calls.check(my + "batchPollTasksByTaskType", batch != null && batch.size() == 2, batch);
        calls.get(my + "batchPollTasksInDomain", () -> tasks.batchPollTasksInDomain("cut", "blue", "till", 1, 100));
        calls.get(my + "ack", () -> tasks.ack(task.getTaskId(), "till"));
        calls.get(my + "ack", () -> tasks.ack("cut", task.getTaskId(), "till"));
        calls.run(my + "logMessageForTask", () -> tasks.logMessageForTask(task.getTaskId(), "half done"));
        var logs = calls.get(my + "getTaskLogs", () -> tasks.getTaskLogs(task.getTaskId()));
        calls.check(my + "getTaskLogs", logs != null && logs.size() == 1, logs);
        Task shown = calls.get(my + "getTaskDetails", () -> tasks.getTaskDetails(task.getTaskId()));
        calls.run(my + "populateTaskPayloads", () -> tasks.populateTaskPayloads(shown));
        calls.get(my + "evaluateAndUploadLargePayload", () -> tasks.evaluateAndUploadLargePayload(Map.of("a", 1), "cut"));
        calls.run(my + "updateTask", () -> tasks.updateTask(done(task, Map.of("pieces", 1))));
        Task next = calls.get(my + "updateTaskV2", () -> tasks.updateTaskV2(done(batch.get(0), Map.of("pieces", 1))));
        calls.check(my + "updateTaskV2", next != null && "cut".equals(next.getTaskDefName()), next);
        calls.run(my + "updateTask", () -> tasks.updateTask(done(batch.get(1), Map.of("pieces", 1)), "cut"));
        calls.get(my + "updateTaskV2", () -> tasks.updateTaskV2(done(next, Map.of("pieces", 1)), "cut"));
        calls.get(my + "getQueueSizeForTask", () -> tasks.getQueueSizeForTask("cut"));
        calls.get(my + "getQueueSizeForTask", () -> tasks.getQueueSizeForTask("cut", "", "", ""));
        var polls = calls.get(my + "getPollData", () -> tasks.getPollData("cut"));
        calls.check(my + "getPollData", polls != null && !polls.isEmpty(), polls);
        calls.get(my + "getAllPollData", tasks::getAllPollData);
        calls.get(my + "requeuePendingTasksByTaskType", () -> tasks.requeuePendingTasksByTaskType("cut"));
        calls.run(my + "removeTaskFromQueue", () -> tasks.removeTaskFromQueue("cut", task.getTaskId()));
        calls.get(my + "search", () -> tasks.search("taskType = 'cut'"));
        calls.get(my + "search", () -> tasks.search(0, 10, "startTime:DESC", "*", "taskType = 'cut'"));
        calls.get(my + "searchV2", () -> tasks.searchV2("taskType = 'cut'"));
        var found = calls.get(my + "searchV2", () -> tasks.searchV2(0, 10, "startTime:DESC", "*", "taskType = 'cut'"));
        calls.check(my + "searchV2", found != null && found.getTotalHits() > 0, found);
        String id = workflows.startWorkflow(start("wait"));
        calls.run(my + "updateTask", () -> tasks.updateTask(id, "first", TaskResult.Status.COMPLETED, Map.of("a", 1)));
        Workflow run = calls.get(my + "updateTaskSync", () -> tasks.updateTaskSync(id, "second", TaskResult.Status.COMPLETED, Map.of("a", 2)));
        calls.check(my + "updateTaskSync", run != null && run.getStatus() == Workflow.WorkflowStatus.COMPLETED, run);
        for (int way = 0; way < 4; way++) {
            int number = way;
            String each = workflows.startWorkflow(start("wait"));
            if (way == 3) calls.run(my + "signalAsync", () -> tasks.signalAsync(each, Task.Status.COMPLETED, Map.of("by", "ann")));
            else calls.get(my + "signal", () -> switch (number) {
                case 0 -> tasks.signal(each, Task.Status.COMPLETED, Map.of("by", "ann"));
                case 1 -> tasks.signal(each, Task.Status.COMPLETED, Map.of("by", "ann"), ReturnStrategy.BLOCKING_TASK);
                default -> tasks.signal(each, Task.Status.COMPLETED, Map.of("by", "ann"), ReturnStrategy.TARGET_WORKFLOW, 1L);
            });
            Task.Status status = workflows.getWorkflow(each, true).getTasks().get(0).getStatus();
            calls.check(my + (way == 3 ? "signalAsync" : "signal"), status == Task.Status.COMPLETED, status);
        }
    }

    private static EventHandler handler(String name) {
        EventHandler.Action action = new EventHandler.Action();
        action.setAction(EventHandler.Action.Type.start_workflow);
        EventHandler.StartWorkflow start = new EventHandler.StartWorkflow();
        start.setName("wait");
        action.setStart_workflow(start);
        EventHandler handler = new EventHandler();
        handler.setName(name);
        handler.setEvent("shop:" + name);
        handler.setActive(true);
        handler.setActions(List.of(action));
        return handler;
    }

    private static void events(ConductorClient client) {
        EventClient plain = new EventClient(client);
        OrkesEventClient orkes = new OrkesEventClient(client);
        for (EventClient events : List.of(plain, orkes)) {
            String my = events.getClass().getSimpleName() + ".";
            String name = events == plain ? "torn" : "mended";
            calls.run(my + "setRootURI", () -> new OrkesEventClient(client).setRootURI(client.getBasePath()));
            calls.run(my + "registerEventHandler", () -> events.registerEventHandler(handler(name)));
            calls.run(my + "updateEventHandler", () -> events.updateEventHandler(handler(name)));
            var found = calls.get(my + "getEventHandlers", () -> events.getEventHandlers("shop:" + name, true));
            calls.check(my + "getEventHandlers", found != null && found.size() == 1, found);
        }
        String my = "OrkesEventClient.";
        calls.get(my + "getEventHandlers", orkes::getEventHandlers);
        calls.get(my + "getOrkesEventHandlers", orkes::getOrkesEventHandlers);
        calls.get(my + "getOrkesEventHandlers", () -> orkes.getOrkesEventHandlers("shop:torn", true));
        calls.run(my + "putTagsForEventHandler", () -> orkes.putTagsForEventHandler("torn", List.of(plain("a"))));
        var tags = calls.get(my + "getTagsForEventHandler", () -> orkes.getTagsForEventHandler("torn"));
        calls.check(my + "getTagsForEventHandler", tags != null && tags.size() == 1, tags);
        var queue = new io.orkes.conductor.client.model.event.QueueConfiguration("kafka", "orders") { };
        calls.get(my + "getQueueConfig", () -> orkes.getQueueConfig(queue));
        calls.run(my + "putQueueConfig", () -> orkes.putQueueConfig(queue));
        calls.run(my + "deleteQueueConfig", () -> orkes.deleteQueueConfig(queue));
        calls.run("EventClient.unregisterEventHandler", () -> plain.unregisterEventHandler("torn"));
        calls.run(my + "unregisterEventHandler", () -> orkes.unregisterEventHandler("mended"));
    }

    private static void schedules(ConductorClient client) {
        String my = "OrkesSchedulerClient.";
        OrkesSchedulerClient schedules = new OrkesSchedulerClient(client);
        SaveScheduleRequest request = new SaveScheduleRequest();
        request.setName("nightly");
        request.setCronExpression("0 0 3 * * *");
        request.setStartWorkflowRequest(start("wait"));
        calls.run(my + "saveSchedule", () -> schedules.saveSchedule(request));
        WorkflowSchedule shown = calls.get(my + "getSchedule", () -> schedules.getSchedule("nightly"));
        calls.check(my + "getSchedule", shown != null && "0 0 3 * * *".equals(shown.getCronExpression()), shown);
        calls.get(my + "getAllSchedules", () -> schedules.getAllSchedules("wait"));
        long now = System.currentTimeMillis();
        var moments = calls.get(my + "getNextFewSchedules", () -> schedules.getNextFewSchedules("0 0 3 * * *", now, now + 999_999_999L, 3));
        calls.check(my + "getNextFewSchedules", moments != null && moments.size() == 3, moments);
        calls.run(my + "pauseSchedule", () -> schedules.pauseSchedule("nightly"));
        calls.run(my + "resumeSchedule", () -> schedules.resumeSchedule("nightly"));
        calls.run(my + "pauseSchedule", () -> schedules.pauseSchedule("nightly", "holidays"));
        calls.get(my + "resumeSchedulers", () -> schedules.resumeSchedulers(List.of("nightly")));
        calls.get(my + "pauseSchedulers", () -> schedules.pauseSchedulers(List.of("nightly")));
        calls.run(my + "pauseAllSchedules", schedules::pauseAllSchedules);
        calls.run(my + "resumeAllSchedules", schedules::resumeAllSchedules);
        calls.run(my + "requeueAllExecutionRecords", schedules::requeueAllExecutionRecords);
        calls.get(my + "search", () -> schedules.search(0, 10, "startTime:DESC", "*", "scheduleName IN (nightly)"));
        calls.run(my + "setSchedulerTags", () -> schedules.setSchedulerTags(List.of(tag("a")), "nightly"));
        calls.get(my + "getSchedulerTags", () -> schedules.getSchedulerTags("nightly"));
        calls.run(my + "deleteSchedulerTags", () -> schedules.deleteSchedulerTags(List.of(tag("a")), "nightly"));
        calls.run(my + "deleteSchedule", () -> schedules.deleteSchedule("nightly"));
    }

    private static void models(ConductorClient client) {
        String my = "OrkesIntegrationClient.";
        OrkesIntegrationClient integrations = new OrkesIntegrationClient(client);
        IntegrationUpdate provider = new IntegrationUpdate();
        provider.setType("openai");
        provider.setCategory(Category.AI_MODEL);
        provider.setDescription("Ours");
        provider.setEnabled(true);
        provider.setConfiguration(Map.of("api_key", "sk-4711"));
        calls.run(my + "saveIntegration", () -> integrations.saveIntegration("main", provider));
        Integration found = calls.get(my + "getIntegration", () -> integrations.getIntegration("main"));
        calls.check(my + "getIntegration", found != null && "***".equals(found.getConfiguration().get("api_key")), found);
        List<?> all = calls.get(my + "getIntegrations", () -> integrations.getIntegrations("AI_MODEL", true));
        calls.check(my + "getIntegrations", all != null && all.size() == 1, all);

        IntegrationApiUpdate model = new IntegrationApiUpdate();
        model.setDescription("Large");
        model.setEnabled(true);
        model.setMaxTokens(1000L);
        model.setFrequency(IntegrationApiUpdate.Frequency.WEEKLY);
        calls.run(my + "saveIntegrationApi", () -> integrations.saveIntegrationApi("main", "gpt-4o", model));
        var api = calls.get(my + "getIntegrationApi", () -> integrations.getIntegrationApi("gpt-4o", "main"));
        calls.check(my + "getIntegrationApi", api != null && "Large".equals(api.getDescription()), api);
        List<?> apis = calls.get(my + "getIntegrationApis", () -> integrations.getIntegrationApis("main"));
        calls.check(my + "getIntegrationApis", apis != null && apis.size() == 1, apis);
        calls.get(my + "getTokenUsageForIntegration", () -> integrations.getTokenUsageForIntegration("gpt-4o", "main"));
        calls.get(my + "getTokenUsageForIntegrationProvider", () -> integrations.getTokenUsageForIntegrationProvider("main"));

        new OrkesPromptClient(client).savePrompt("bound", "Bound", "Hi");
        calls.run(my + "associatePromptWithIntegration", () -> integrations.associatePromptWithIntegration("main", "gpt-4o", "bound"));
        calls.get(my + "getPromptsWithIntegration", () -> integrations.getPromptsWithIntegration("main", "gpt-4o"));

        calls.run(my + "saveTagForIntegration", () -> integrations.saveTagForIntegration(List.of(tag("a")), "main"));
        List<?> tags = calls.get(my + "getTagsForIntegration", () -> integrations.getTagsForIntegration("main"));
        calls.check(my + "getTagsForIntegration", tags != null && tags.size() == 1, tags);
        calls.run(my + "deleteTagForIntegration", () -> integrations.deleteTagForIntegration(List.of(tag("a")), "main"));
        calls.run(my + "deleteIntegrationApi", () -> integrations.deleteIntegrationApi("gpt-4o", "main"));
        calls.run(my + "deleteIntegration", () -> integrations.deleteIntegration("main"));
    }

    private static void prompts(ConductorClient client) {
        String my = "OrkesPromptClient.";
        OrkesPromptClient prompts = new OrkesPromptClient(client);
        calls.run(my + "savePrompt", () -> prompts.savePrompt("greeting", "Hello", "Greet ${name}"));
        calls.run(my + "savePrompt", () -> prompts.savePrompt("greeting", "Hello", "Greet ${name}", List.of("openai:gpt-4o"), 2, false));
        calls.run(my + "updatePrompt", () -> prompts.updatePrompt("greeting", 2, "Hi", "Greet ${name} twice", List.of("openai:gpt-4o")));
        PromptTemplate found = calls.get(my + "getPrompt", () -> prompts.getPrompt("greeting"));
        calls.check(my + "getPrompt", found != null && "Greet ${name} twice".equals(found.getTemplate()) && found.getVersion() == 2, found);
        calls.get(my + "getPrompt", () -> prompts.getPrompt("greeting", 1));
        List<?> versions = calls.get(my + "getAllPromptVersions", () -> prompts.getAllPromptVersions("greeting"));
        calls.check(my + "getAllPromptVersions", versions != null && versions.size() == 2, versions);

        PromptTemplate other = new PromptTemplate();
        other.setName("other");
        other.setTemplate("Other");
        calls.run(my + "savePrompts", () -> prompts.savePrompts(List.of(other), true));
        List<?> all = calls.get(my + "getPrompts", prompts::getPrompts);
        calls.check(my + "getPrompts", all != null && all.size() == 3, all);

        calls.run(my + "updateTagForPromptTemplate", () -> prompts.updateTagForPromptTemplate("greeting", List.of(tag("a"))));
        List<?> tags = calls.get(my + "getTagsForPromptTemplate", () -> prompts.getTagsForPromptTemplate("greeting"));
        calls.check(my + "getTagsForPromptTemplate", tags != null && tags.size() == 1, tags);
        calls.run(my + "deleteTagForPromptTemplate", () -> prompts.deleteTagForPromptTemplate("greeting", List.of(tag("a"))));
        String answer = calls.get(my + "testPrompt", () -> prompts.testPrompt("Greet ${name}", Map.of("name", "Ann"), "openai", "gpt-4o", 0.1f, 0.9f, List.of(".")));
        calls.check(my + "testPrompt", "Bonjour Ann".equals(answer), answer);
        calls.run(my + "deletePrompt", () -> prompts.deletePrompt("greeting", 1));
        calls.run(my + "deletePrompt", () -> prompts.deletePrompt("greeting"));
    }

    private static void secrets(ConductorClient client) {
        String my = "OrkesSecretClient.";
        OrkesSecretClient secrets = new OrkesSecretClient(client);
        calls.run(my + "putSecret", () -> secrets.putSecret("open", "till"));
        String shown = calls.get(my + "getSecret", () -> secrets.getSecret("till"));
        calls.check(my + "getSecret", shown != null && shown.contains("open"), shown);
        calls.check(my + "secretExists", Boolean.TRUE.equals(calls.get(my + "secretExists", () -> secrets.secretExists("till"))), "false");
        calls.get(my + "listAllSecretNames", secrets::listAllSecretNames);
        calls.get(my + "listSecretsThatUserCanGrantAccessTo", secrets::listSecretsThatUserCanGrantAccessTo);
        calls.run(my + "setSecretTags", () -> secrets.setSecretTags(List.of(tag("a")), "till"));
        calls.get(my + "getSecretTags", () -> secrets.getSecretTags("till"));
        calls.run(my + "deleteSecretTags", () -> secrets.deleteSecretTags(List.of(tag("a")), "till"));
        calls.run(my + "deleteSecret", () -> secrets.deleteSecret("till"));

        String other = "OrkesEnvironmentClient.";
        OrkesEnvironmentClient environment = new OrkesEnvironmentClient(client);
        calls.run(other + "createOrUpdateEnvironmentVariable", () -> environment.createOrUpdateEnvironmentVariable("floor", "2"));
        String value = calls.get(other + "getEnvironmentVariable", () -> environment.getEnvironmentVariable("floor"));
        calls.check(other + "getEnvironmentVariable", value != null && value.contains("2"), value);
        calls.get(other + "getAllEnvironmentVariables", environment::getAllEnvironmentVariables);
        calls.run(other + "setEnvironmentVariableTags", () -> environment.setEnvironmentVariableTags("floor", List.of(plain("a"))));
        calls.get(other + "getEnvironmentVariableTags", () -> environment.getEnvironmentVariableTags("floor"));
        calls.run(other + "deleteEnvironmentVariableTags", () -> environment.deleteEnvironmentVariableTags("floor", List.of(plain("a"))));
        calls.get(other + "deleteEnvironmentVariable", () -> environment.deleteEnvironmentVariable("floor"));
    }

    private static void people(ConductorClient client) {
        String my = "OrkesAuthorizationClient.";
        OrkesAuthorizationClient people = new OrkesAuthorizationClient(client);
        UpsertUserRequest user = new UpsertUserRequest();
        user.setName("Ann");
        user.setRoles(List.of(UpsertUserRequest.RolesEnum.USER));
        calls.get(my + "upsertUser", () -> people.upsertUser(user, "ann"));
        calls.get(my + "getUser", () -> people.getUser("ann"));
        calls.get(my + "listUsers", () -> people.listUsers(false));
        calls.run(my + "sendInviteEmail", () -> people.sendInviteEmail("ann"));
        UpsertGroupRequest group = new UpsertGroupRequest();
        group.setDescription("those who cut");
        group.setRoles(List.of(UpsertGroupRequest.RolesEnum.USER));
        calls.get(my + "upsertGroup", () -> people.upsertGroup(group, "tailors"));
        calls.get(my + "getGroup", () -> people.getGroup("tailors"));
        calls.get(my + "listGroups", people::listGroups);
        calls.run(my + "addUserToGroup", () -> people.addUserToGroup("tailors", "ann"));
        var members = calls.get(my + "getUsersInGroup", () -> people.getUsersInGroup("tailors"));
        calls.check(my + "getUsersInGroup", members != null && members.size() == 1, members);
        AuthorizationRequest grant = new AuthorizationRequest();
        grant.setAccess(List.of(AuthorizationRequest.AccessEnum.READ));
        SubjectRef subject = new SubjectRef();
        subject.setId("tailors");
        subject.setType(SubjectRef.TypeEnum.GROUP);
        grant.setSubject(subject);
        TargetRef target = new TargetRef();
        target.setId("coat");
        target.setType(TargetRef.TypeEnum.WORKFLOW_DEF);
        grant.setTarget(target);
        calls.run(my + "grantPermissions", () -> people.grantPermissions(grant));
        var granted = calls.get(my + "getPermissions", () -> people.getPermissions("WORKFLOW_DEF", "coat"));
        calls.check(my + "getPermissions", granted != null && granted.containsKey("READ"), granted);
        calls.get(my + "getGrantedPermissionsForGroup", () -> people.getGrantedPermissionsForGroup("tailors"));
        calls.get(my + "getGrantedPermissionsForUser", () -> people.getGrantedPermissionsForUser("ann"));
        calls.run(my + "removePermissions", () -> people.removePermissions(grant));
        calls.run(my + "removeUserFromGroup", () -> people.removeUserFromGroup("tailors", "ann"));
        calls.run(my + "deleteGroup", () -> people.deleteGroup("tailors"));
        calls.run(my + "deleteUser", () -> people.deleteUser("ann"));
        CreateOrUpdateApplicationRequest till = new CreateOrUpdateApplicationRequest();
        till.setName("till");
        ConductorApplication application = calls.get(my + "createApplication", () -> people.createApplication(till));
        String id = application.getId();
        calls.get(my + "getApplication", () -> people.getApplication(id));
        calls.get(my + "listApplications", people::listApplications);
        calls.get(my + "updateApplication", () -> people.updateApplication(till, id));
        var key = calls.get(my + "createAccessKey", () -> people.createAccessKey(id));
        calls.get(my + "getAccessKeys", () -> people.getAccessKeys(id));
        calls.get(my + "getApplicationByAccessKeyId", () -> people.getApplicationByAccessKeyId(key.getId()));
        calls.get(my + "toggleAccessKeyStatus", () -> people.toggleAccessKeyStatus(id, key.getId()));
        calls.run(my + "deleteAccessKey", () -> people.deleteAccessKey(id, key.getId()));
        calls.run(my + "addRoleToApplicationUser", () -> people.addRoleToApplicationUser(id, "WORKER"));
        calls.run(my + "removeRoleFromApplicationUser", () -> people.removeRoleFromApplicationUser(id, "WORKER"));
        calls.run(my + "setApplicationTags", () -> people.setApplicationTags(List.of(tag("a")), id));
        calls.get(my + "getApplicationTags", () -> people.getApplicationTags(id));
        calls.run(my + "deleteApplicationTags", () -> people.deleteApplicationTags(List.of(tag("a")), id));
        calls.run(my + "deleteApplication", () -> people.deleteApplication(id));

        OrkesTokenClient tokens = new OrkesTokenClient(client);
        GenerateTokenRequest asked = new GenerateTokenRequest();
        asked.setKeyId(System.getenv("CONDUCTOR_AUTH_KEY"));
        asked.setKeySecret(System.getenv("CONDUCTOR_AUTH_SECRET"));
        var token = calls.get("OrkesTokenClient.generateToken", () -> tokens.generateToken(asked));
        calls.check("OrkesTokenClient.generateToken", token != null && token.getToken() != null, token);
        calls.get("OrkesTokenClient.getUserInfo", tokens::getUserInfo);
    }

    private static void files(ConductorClient client) throws Exception {
        FileClient files = new FileClient(client);
        String id = new WorkflowClient(client).startWorkflow(start("wait"));
        Path source = Files.writeString(Files.createTempFile("pattern", ".txt"), "a sleeve");
        String handle = calls.get("FileClient.upload", () -> files.upload(id, source));
        calls.get("FileClient.getMetadata", () -> files.getMetadata(id, handle));
        Path copy = calls.get("FileClient.download", () -> files.download(id, handle, Files.createTempDirectory("copies").resolve("pattern.txt")));
        calls.check("FileClient.download", copy != null && "a sleeve".equals(Files.readString(copy)), copy);
    }

    /** Orkes' service registry is not part of the server. */
    private static void services(ConductorClient client) throws Exception {
        OrkesServiceRegistryClient services = new OrkesServiceRegistryClient(client);
        for (var method : OrkesServiceRegistryClient.class.getDeclaredMethods()) {
            if (!java.lang.reflect.Modifier.isPublic(method.getModifiers()) || method.isSynthetic()) continue;
            Object[] given = new Object[method.getParameterCount()];
            for (int index = 0; index < given.length; index++) {
                Class<?> type = method.getParameterTypes()[index];
                given[index] = type == String.class ? "x" : type == boolean.class ? (Object) false : type == byte[].class ? new byte[] {1}
                    : type.getDeclaredConstructor().newInstance();
            }
            calls.get("OrkesServiceRegistryClient." + method.getName(), () -> {
                try {
                    return method.invoke(services, given);
                } catch (java.lang.reflect.InvocationTargetException failed) {
                    throw (Exception) failed.getCause();
                }
            });
        }
    }
}
