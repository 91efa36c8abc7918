package shop;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JavaType;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.cfg.CoercionAction;
import com.fasterxml.jackson.databind.cfg.CoercionInputShape;
import com.fasterxml.jackson.databind.type.LogicalType;
import com.netflix.conductor.common.config.ObjectMapperProvider;
import com.netflix.conductor.common.metadata.tasks.PollData;
import com.netflix.conductor.common.metadata.tasks.Task;
import com.netflix.conductor.common.metadata.tasks.TaskDef;
import com.netflix.conductor.common.metadata.tasks.TaskExecLog;
import com.netflix.conductor.common.metadata.workflow.WorkflowDef;
import com.netflix.conductor.common.model.BulkResponse;
import com.netflix.conductor.common.run.SearchResult;
import com.netflix.conductor.common.run.TaskSummary;
import com.netflix.conductor.common.run.Workflow;
import com.netflix.conductor.common.run.WorkflowSummary;
import java.io.File;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Read the replies of a folder with the SDK's own models, once as the SDK reads them and once without conversions. */
public final class Documents {
    private static final Map<String, Class<?>> MODELS = Map.of(
        "Workflow", Workflow.class, "Task", Task.class, "WorkflowStatus", statusModel(),
        "WorkflowSummary", WorkflowSummary.class, "TaskSummary", TaskSummary.class, "WorkflowDef", WorkflowDef.class,
        "TaskDef", TaskDef.class, "PollData", PollData.class, "TaskExecLog", TaskExecLog.class,
        "BulkResponse", BulkResponse.class);

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(System.getenv("REPLIES"));
        ObjectMapper lenient = new ObjectMapperProvider().getObjectMapper();
        ObjectMapper strict = strict(lenient.copy());
        Map<String, List<String>> manifest = lenient.readValue(
            folder.resolve("manifest.json").toFile(),
            lenient.getTypeFactory().constructMapType(LinkedHashMap.class, lenient.constructType(String.class),
                lenient.getTypeFactory().constructCollectionType(List.class, String.class)));
        Map<String, String> results = new LinkedHashMap<>();
        for (Map.Entry<String, List<String>> each : manifest.entrySet()) {
            JavaType type = typeOf(each.getKey(), lenient);
            for (String file : each.getValue()) results.put(file, read(folder.resolve(file).toFile(), type, lenient, strict));
        }
        System.out.println("RESULTS " + lenient.writeValueAsString(results));
    }

    /** The SDK for Java 17 has no model for the status of a workflow. */
    private static Class<?> statusModel() {
        try {
            return Class.forName("io.orkes.conductor.client.model.WorkflowStatus");
        } catch (ClassNotFoundException missing) {
            return Map.class;
        }
    }

    private static JavaType typeOf(String name, ObjectMapper mapper) {
        int bracket = name.indexOf('<');
        if (bracket < 0) {
            if (!MODELS.containsKey(name)) throw new IllegalArgumentException("No model for " + name);
            return mapper.constructType(MODELS.get(name));
        }
        Class<?> container = name.startsWith("SearchResult") ? SearchResult.class : List.class;
        return mapper.getTypeFactory().constructParametricType(container, MODELS.get(name.substring(bracket + 1, name.length() - 1)));
    }

    private static String read(File file, JavaType type, ObjectMapper lenient, ObjectMapper strict) {
        try {
            lenient.readValue(file, type);
            strict.readValue(file, type);
            return Calls.WORKS;
        } catch (Exception failed) {
            return failed.getMessage();
        }
    }

    /** Refuse texts for numbers, numbers for texts, fractions for integers, and null for a primitive value. */
    private static ObjectMapper strict(ObjectMapper mapper) {
        mapper.configure(MapperFeature.ALLOW_COERCION_OF_SCALARS, false);
        mapper.configure(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES, true);
        mapper.configure(DeserializationFeature.ACCEPT_FLOAT_AS_INT, false);
        for (CoercionInputShape shape : List.of(CoercionInputShape.Integer, CoercionInputShape.Float, CoercionInputShape.Boolean))
            mapper.coercionConfigFor(LogicalType.Textual).setCoercion(shape, CoercionAction.Fail);
        return mapper;
    }
}
